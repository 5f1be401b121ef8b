// Which convolutions are packed, and as what.
#include "graph/base/dtype.h"
#include "graph/base/layout.h"
#include "kernels/common/conv_shape.h"
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

bool IsPackable(const ConvOp& conv, int64_t columns) {
  constexpr int64_t kMostTaps = 32;  // along a dim: they are listed
  if (!LiesChannelsLast(conv)) return false;
  for (const ConvDim& dim : conv.shape.volume) {
    if (dim.filter > kMostTaps || dim.stride > kMostTaps) return false;
  }
  // Of f32 the library makes a single panel in less time.
  const bool is_enough = conv.image_desc.dtype != DType::kF32 ||
                         PanelsOf(columns) >= PanelsAtOnce();
  return 4 * columns >= 3 * Padded(columns) && is_enough;
}

}  // namespace kernels
}  // namespace halftone
