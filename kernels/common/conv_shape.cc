#include "kernels/common/conv_shape.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "graph/ops/windows.h"

namespace halftone {
namespace kernels {
namespace {

void Locate(const BoundOp& op, ConvOp* conv) {
  const std::string& type = op.type();
  if (absl::EndsWith(type, "_grad_input")) {
    conv->computed = ConvResult::kImage;
    conv->image = op.OutputIndex("InputGrad");
    conv->filter = op.InputIndex("Filter");
    conv->result = op.InputIndex("OutputGrad");
  } else if (absl::EndsWith(type, "_transpose")) {
    conv->computed = ConvResult::kImage;
    conv->image = op.OutputIndex("Output");
    conv->filter = op.InputIndex("Filter");
    conv->result = op.InputIndex("Input");
    conv->bias = op.InputIndex("Bias");
  } else if (absl::EndsWith(type, "_grad_filter")) {
    conv->computed = ConvResult::kFilter;
    conv->image = op.InputIndex("Input");
    conv->filter = op.OutputIndex("FilterGrad");
    conv->result = op.InputIndex("OutputGrad");
  } else {
    conv->image = op.InputIndex("Input");
    conv->filter = op.InputIndex("Filter");
    conv->result = op.OutputIndex("Output");
    conv->bias = op.InputIndex("Bias");
  }
  const auto desc = [&](ConvResult which, int position) {
    return conv->computed == which ? op.outputs()[position]
                                   : op.inputs()[position];
  };
  conv->image_desc = desc(ConvResult::kImage, conv->image);
  conv->filter_desc = desc(ConvResult::kFilter, conv->filter);
  conv->result_desc = desc(ConvResult::kResult, conv->result);
}

}  // namespace

ConvOp ConvOp::Of(const BoundOp& op) {
  ConvOp conv;
  Locate(op, &conv);
  ConvShape& shape = conv.shape;
  shape.groups = op.Int("groups");
  shape.samples = conv.image_desc.dims[0];
  shape.channels = conv.filter_desc.dims[1];
  shape.filters = conv.filter_desc.dims[0] / shape.groups;
  shape.spatial = conv.image_desc.rank() - 2;
  const std::vector<int64_t> paddings =
      ops::FullPaddings(op.Ints("paddings"), shape.spatial);
  for (int i = 0; i < shape.spatial; ++i) {
    ConvDim& dim = shape.dims()[i];
    dim.image = conv.image_desc.dims[2 + i];
    dim.filter = conv.filter_desc.dims[2 + i];
    dim.result = conv.result_desc.dims[2 + i];
    dim.stride = op.Ints("strides")[i];
    dim.dilation = op.Ints("dilations")[i];
    dim.before = paddings[2 * i];
    dim.after = paddings[2 * i + 1];
  }
  return conv;
}

VolumeStrides VolumeStridesOf(const TensorDesc& desc) {
  const Extents lie = StridesOf(desc);
  const int rank = desc.rank();
  VolumeStrides strides;
  for (int i = 0; i < 2; ++i) strides.of[i] = lie[i];
  for (int i = 2; i < rank; ++i) strides.of[i + 5 - rank] = lie[i];
  return strides;
}

}  // namespace kernels
}  // namespace halftone
