#include "kernels/common/pool_shape.h"

#include "graph/ops/infer_helpers.h"

namespace halftone {
namespace kernels {

PoolShape PoolShape::Of(const BoundOp& op) {
  const TensorDesc& x = op.inputs()[0];
  const TensorDesc& out =
      op.schema().FindInput("Out") >= 0 ? op.Input("Out") : op.outputs()[0];
  PoolShape shape;
  shape.max = op.Str("pooling_type") == "max";
  shape.exclusive = op.Bool("exclusive");
  const bool last = x.layout == Layout::kChannelsLast;
  shape.planes = last ? x.dims[0] : x.dims[0] * x.dims[1];
  shape.channels = last ? x.dims[1] : 1;
  if (shape.channels == 0) shape.planes = 0;
  PoolDim &h = shape.h, &w = shape.w;
  h.in = x.dims[2];
  w.in = x.dims[3];
  if (op.Bool("global_pooling")) {
    // One window over a single long row.
    w.in *= h.in;
    h.in = w.out = h.out = 1;
    w.kernel = w.in;
    shape.exclusive = true;
    return shape;
  }
  h.out = out.dims[2];
  w.out = out.dims[3];
  const auto paddings = ops::FullPaddings(op.Ints("paddings"));
  h.kernel = op.Ints("ksize")[0];
  w.kernel = op.Ints("ksize")[1];
  h.stride = op.Ints("strides")[0];
  w.stride = op.Ints("strides")[1];
  h.before = paddings[0];
  w.before = paddings[2];
  return shape;
}

}  // namespace kernels
}  // namespace halftone
