#include "kernels/common/attention.h"

#include <cmath>

#include "kernels/common/shapes.h"

namespace halftone {
namespace kernels {
namespace {

AttentionShape ShapeOf(const BoundOp& op) {
  const TensorDesc &q = op.Input("Q"), &k = op.Input("K"), &v = op.Input("V");
  AttentionShape shape;
  shape.batch = q.dims[0];
  shape.rows = q.dims[1];
  shape.columns = k.dims[1];
  shape.heads = q.dims[2];
  shape.kv_heads = k.dims[2];
  shape.width = q.dims[3];
  shape.value_width = v.dims[3];
  shape.causal = op.Bool("causal");
  const double scale = op.Float("scale");
  shape.scale = static_cast<float>(
      scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(shape.width)));
  if (!op.HasInput("Mask")) return shape;
  const TensorDesc& mask = op.Input("Mask");
  int64_t stride = 1;
  for (int i = 3; i >= 0; --i) {
    shape.mask_strides[i] = mask.dims[i] == 1 ? 0 : stride;
    stride *= mask.dims[i];
  }
  return shape;
}

}  // namespace

AttentionOp AttentionOp::Of(const BoundOp& op) {
  AttentionOp attention;
  attention.shape = ShapeOf(op);
  attention.dtype = op.Input("Q").dtype;
  attention.mask = op.InputIndex("Mask");
  if (attention.mask >= 0) attention.mask_dtype = op.Input("Mask").dtype;
  attention.out = InputOf(op, "Out");
  attention.log_sum_exp = InputOf(op, "LogSumExp");
  attention.out_grad = InputOf(op, "OutGrad");
  attention.seed = InputOf(op, "Seed");
  attention.step = InputOf(op, "Step");
  attention.first_sample = InputOf(op, "FirstSample");
  if (op.KnowsAttr("dropout_prob")) {
    attention.dropout = functors::DropoutOp::Of(op.Float("dropout_prob"));
    attention.stream = static_cast<uint32_t>(op.Int("stream"));
  }
  return attention;
}

}  // namespace kernels
}  // namespace halftone
