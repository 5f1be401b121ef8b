#include "kernels/common/pool_shape.h"

#include <limits>

#include "graph/base/layout.h"
#include "graph/ops/windows.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace kernels {
namespace {

void MakeGlobal(PoolShape& shape) {
  // One window over a single long row.
  shape.w.in *= shape.d.in * shape.h.in;
  shape.d.in = shape.h.in = 1;
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
  const int spatial = x.rank() - 2;
  PoolShape shape;
  // Those with indices are of maxima.
  shape.max = op.schema().FindAttr("pooling_type") < 0 ||
              op.Str("pooling_type") == "max";
  shape.exclusive =
      op.schema().FindAttr("exclusive") < 0 || op.Bool("exclusive");
  const bool last = x.layout == Layout::kChannelsLast;
  shape.planes = last ? x.dims[0] : x.dims[0] * x.dims[1];
  shape.channels = last ? x.dims[1] : 1;
  if (shape.channels == 0) shape.planes = 0;
  PoolDim* const volume[] = {&shape.d, &shape.h, &shape.w};
  PoolDim* const* const dims = volume + 3 - spatial;
  bool one_window = true;
  for (int i = 0; i < spatial; ++i) {
    dims[i]->in = x.dims[2 + i];
    one_window &= out.dims[2 + i] == 1;
  }
  const bool adaptive = op.Bool("adaptive");
  if (op.Bool("global_pooling") || (adaptive && one_window)) {
    MakeGlobal(shape);
    return shape;
  }
  if (adaptive) {
    for (int i = 0; i < spatial; ++i) MakeAdaptive(out.dims[2 + i], *dims[i]);
    shape.exclusive = true;
    return shape;
  }
  const auto paddings = ops::FullPaddings(op.Ints("paddings"), spatial);
  for (int i = 0; i < spatial; ++i) {
    dims[i]->out = out.dims[2 + i];
    dims[i]->kernel = op.Ints("ksize")[i];
    dims[i]->stride = op.Ints("strides")[i];
    dims[i]->before = paddings[2 * i];
    dims[i]->after = paddings[2 * i + 1];
  }
  shape.all_windows = op.Bool("ceil_mode") && op.Str("ceil_windows") == "all";
  if (shape.max && shape.all_windows) {
    shape.of_nothing = std::numeric_limits<float>::lowest();
  }
  return shape;
}

}  // namespace kernels
}  // namespace halftone
