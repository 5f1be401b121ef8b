// Which convolutions are packed, and as what.
#include <algorithm>
#include <iterator>

#include "graph/base/dtype.h"
#include "graph/base/layout.h"
#include "kernels/common/conv_shape.h"
#include "kernels/cpu/amx.h"
#include "kernels/cpu/conv.h"
#include "kernels/cpu/conv_packed.h"
#include "kernels/cpu/small_product.h"
#include "kernels/fused_op.h"

namespace halftone {
namespace kernels {

ConvOp ConvOf(const BoundOp& op) {
  if (op.type() != "fusion") return ConvOp::Of(op);
  const BoundOp body = FusedOp(op).Of("conv");
  ConvOp conv = ConvOp::Of(body);
  conv.image = ArgumentPosition(body, "Input");
  conv.filter = ArgumentPosition(body, "Filter");
  conv.bias = ArgumentPosition(body, "Bias");
  return conv;
}

bool LiesChannelsLast(const ConvOp& conv) {
  for (const TensorDesc* desc :
       {&conv.image_desc, &conv.filter_desc, &conv.result_desc}) {
    if (desc->layout != Layout::kChannelsLast || desc->rank() != 4 ||
        desc->elements() == 0) {
      return false;
    }
  }
  return conv.shape.groups == 1;
}

ConvOp JoinTaps(ConvOp conv) {
  ConvDim& line = conv.shape.volume[2];
  if (!LiesChannelsLast(conv) || line.stride != line.filter ||
      line.dilation != 1 || line.before != 0 ||
      line.image != line.result * line.filter) {
    return conv;
  }
  conv.shape.channels *= line.filter;
  line.image = line.result;
  line.filter = line.stride = 1;
  return conv;
}

bool PairsDepth(const ConvOp& conv) {
  return conv.image_desc.dtype == DType::kBF16 &&
         conv.filter_desc.dtype == DType::kBF16 &&
         conv.result_desc.dtype == DType::kBF16 && HasPairs();
}

bool PairsAlongLines(const ConvOp& conv) {
  return PairsDepth(conv) && conv.computed == ConvResult::kResult &&
         !HasAmx() && conv.shape.channels % 2 != 0 &&
         conv.shape.volume[2].dilation == 1;
}

// Where the library has as wide instructions, it takes less time for an image
// of few channels, but for a single panel and for pairs along lines, and 1.1
// to 1.3 of it for gradients of bf16 images that windows stride over, unless
// filters are large; but with AMX, which it does not use there, it is for these
// alone.
bool IsPackedFirst(const BoundOp& op, DType dtype) {
  if (!OnednnIsAsWide(dtype)) return true;
  const ConvOp conv = ConvOf(op);
  const bool forward = conv.computed == ConvResult::kResult;
  const auto& dims = conv.shape.volume;
  const bool strides =
      !forward && dtype == DType::kBF16 &&
      std::any_of(std::begin(dims), std::end(dims),
                  [](const ConvDim& dim) { return dim.stride > 1; });
  if (UsesAmx(dtype)) return strides;
  if (strides) return FilterShare(conv) > 1;
  return conv.shape.channels >= kPanel || !forward || PairsAlongLines(conv) ||
         PanelsOf(conv.shape.filters) == 1;
}

bool IsPackable(const ConvOp& conv, int64_t columns) {
  constexpr int64_t kMostTaps = 32;  // along a dim: they are listed
  if (!LiesChannelsLast(conv)) return false;
  for (const ConvDim& dim : conv.shape.volume) {
    if (dim.filter > kMostTaps || dim.stride > kMostTaps) return false;
  }
  // Of f32 the library makes a single panel in less time, but of few channels.
  const bool is_thin =
      conv.computed == ConvResult::kResult && conv.shape.channels < kPanel;
  const bool is_enough = conv.image_desc.dtype != DType::kF32 ||
                         PanelsOf(columns) >= PanelsAtOnce() || is_thin;
  return 4 * columns >= 3 * Padded(columns) && is_enough;
}

}  // namespace kernels
}  // namespace halftone
