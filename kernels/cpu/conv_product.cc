// Convolutions of one tap with channels-last images, which are matrix products:
// a row for each pixel, a column for each channel, and nothing needs to move.
#include <algorithm>
#include <iterator>

#include "graph/base/dtype.h"
#include "graph/base/layout.h"
#include "kernels/common/conv_shape.h"
#include "kernels/cpu/conv.h"
#include "kernels/cpu/matmul.h"

namespace halftone {
namespace kernels {
namespace {

bool IsOneTap(const ConvDim& dim) {
  return dim.filter == 1 && dim.stride == 1 && dim.before == 0 &&
         dim.after == 0;
}

bool IsProduct(const ConvOp& conv) {
  const ConvDim(&volume)[3] = conv.shape.volume;
  return std::all_of(std::begin(volume), std::end(volume), IsOneTap) &&
         conv.shape.groups == 1 &&
         conv.image_desc.layout == Layout::kChannelsLast &&
         conv.result_desc.layout == Layout::kChannelsLast;
}

Matrix Rows(int64_t rows, int64_t columns) {
  return {1, rows, columns, rows * columns, columns, 1};
}

Matrix Transposed(const Matrix& m) {
  return {m.batch,        m.columns,       m.rows,
          m.batch_stride, m.column_stride, m.row_stride};
}

// result = image * filter', the filter being [filters, channels].
OnednnSpec ConvProduct(const BoundOp& op) {
  const ConvOp conv = ConvOp::Of(op);
  const int64_t channels = conv.shape.channels, filters = conv.shape.filters;
  const int64_t pixels = conv.image_desc.elements() / channels;
  const Matrix image = Rows(pixels, channels), result = Rows(pixels, filters);
  const Matrix filter = Rows(filters, channels);
  const ProductOperand image_at = {conv.image, conv.image_desc.dtype};
  const ProductOperand filter_at = {conv.filter, conv.filter_desc.dtype};
  const ProductOperand result_at = {conv.result, conv.result_desc.dtype};
  ProductOperand bias_at;
  if (conv.bias >= 0) bias_at = {conv.bias, op.inputs()[conv.bias].dtype};
  switch (conv.computed) {
    case ConvResult::kResult:
      return ProductSpec({image, Transposed(filter), result}, image_at,
                         filter_at, result_at, bias_at);
    case ConvResult::kImage:
      return ProductSpec({result, filter, image}, result_at, filter_at,
                         image_at, bias_at);
    case ConvResult::kFilter:
      break;
  }
  return ProductSpec({Transposed(result), image, filter}, result_at, image_at,
                     filter_at, bias_at);
}

}  // namespace

void RegisterCpuConvProduct(KernelRegistry& registry, bool before_onednn) {
  const Candidate candidate =
      OnlyWhere(OnednnCandidate("product", ConvProduct), IsProduct);
  const DType dtypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  for (const DType t : dtypes) {
    const Candidate part =
        OnlyWhere(candidate, [t, before_onednn](const ConvOp& conv) {
          constexpr double kLargeShare = 0.5;
          const bool is_faster = OnednnIsAsWide(t) && !UsesAmx(t) &&
                                 FilterShare(conv) > kLargeShare;
          return is_faster == before_onednn;
        });
    registry.Add("conv2d", {t}, Layout::kChannelsLast, part);
    registry.Add("conv2d_grad_input", {t}, Layout::kChannelsLast, part);
    if (before_onednn) continue;
    for (const DType made : dtypes) {
      registry.Add("conv2d_grad_filter", {t, made}, Layout::kChannelsLast,
                   candidate);
    }
  }
}

}  // namespace kernels
}  // namespace halftone
