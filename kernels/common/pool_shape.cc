#include "kernels/common/pool_shape.h"

#include <limits>

#include "graph/base/layout.h"
#include "graph/ops/infer_helpers.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace kernels {
namespace {

void MakeGlobal(PoolShape& shape) {
  // One window over a single long row.
  shape.w.in *= shape.h.in;
  shape.h.in = shape.w.out = shape.h.out = 1;
  shape.w.kernel = shape.w.in;
  shape.exclusive = true;
}

// Windows for `out` results; like any others where they divide the image.
void MakeAdaptive(int64_t out, PoolDim& dim) {
  dim.out = out;
  dim.kernel = dim.stride = dim.in / out;
  if (dim.in % out == 0 && dim.in > 0) return;
  dim.adaptive = true;
  dim.kernel = dim.in / out + 2;  // at most
  dim.stride = 1;
}

}  // namespace

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
  const bool adaptive = op.Bool("adaptive");
  if (op.Bool("global_pooling") ||
      (adaptive && out.dims[2] == 1 && out.dims[3] == 1)) {
    MakeGlobal(shape);
    return shape;
  }
  if (adaptive) {
    MakeAdaptive(out.dims[2], h);
    MakeAdaptive(out.dims[3], w);
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
  h.after = paddings[1];
  w.before = paddings[2];
  w.after = paddings[3];
  shape.all_windows = op.Bool("ceil_mode") && op.Str("ceil_windows") == "all";
  if (shape.max && shape.all_windows) {
    shape.of_nothing = std::numeric_limits<float>::lowest();
  }
  return shape;
}

}  // namespace kernels
}  // namespace halftone
