#include "kernels/common/conv_shape.h"

#include "graph/ops/infer_helpers.h"

namespace halftone {
namespace kernels {
namespace {

void Locate(const BoundOp& op, ConvOp* conv) {
  const std::string& type = op.type();
  if (type == "conv2d_grad_input") {
    conv->computed = ConvResult::kImage;
    conv->image = op.OutputIndex("InputGrad");
    conv->filter = op.InputIndex("Filter");
    conv->result = op.InputIndex("OutputGrad");
    conv->image_desc = op.outputs()[conv->image];
    conv->filter_desc = op.inputs()[conv->filter];
    conv->result_desc = op.inputs()[conv->result];
  } else if (type == "conv2d_grad_filter") {
    conv->computed = ConvResult::kFilter;
    conv->image = op.InputIndex("Input");
    conv->filter = op.OutputIndex("FilterGrad");
    conv->result = op.InputIndex("OutputGrad");
    conv->image_desc = op.inputs()[conv->image];
    conv->filter_desc = op.outputs()[conv->filter];
    conv->result_desc = op.inputs()[conv->result];
  } else {
    conv->image = op.InputIndex("Input");
    conv->filter = op.InputIndex("Filter");
    conv->result = op.OutputIndex("Output");
    conv->bias = op.InputIndex("Bias");
    conv->image_desc = op.inputs()[conv->image];
    conv->filter_desc = op.inputs()[conv->filter];
    conv->result_desc = op.outputs()[conv->result];
  }
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
  const auto paddings = ops::FullPaddings(op.Ints("paddings"));
  ConvDim* const dims[] = {&shape.h, &shape.w};
  for (int i = 0; i < 2; ++i) {
    ConvDim& dim = *dims[i];
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

}  // namespace kernels
}  // namespace halftone
