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
  const bool grad = op.schema().FindInput("OutGrad") >= 0;
  const TensorDesc& x =
      op.schema().FindInput("X") >= 0 ? op.Input("X") : op.outputs()[0];
  const TensorDesc& out = grad ? op.Input("OutGrad") : op.outputs()[0];
  const int spatial = x.rank() - 2;
  PoolShape shape;
  // Ops without it are of maxima.
  shape.max = !op.KnowsAttr("pooling_type") || op.Str("pooling_type") == "max";
  shape.exclusive = !op.KnowsAttr("exclusive") || op.Bool("exclusive");
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
  const auto is = [&](const char* attr) {
    return op.KnowsAttr(attr) && op.Bool(attr);
  };
  const bool adaptive = is("adaptive");
  if (is("global_pooling") || (adaptive && one_window)) {
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

std::vector<std::vector<LineOver>> LinesOver(const PoolShape& shape) {
  const PoolDim &d = shape.d, &h = shape.h;
  std::vector<std::vector<LineOver>> over(d.in * h.in);
  for (int64_t row = 0; row < d.in * h.in; ++row) {
    const int64_t z = row / h.in, y = row % h.in;
    const Range slices = d.WindowsOver(z), lines = h.WindowsOver(y);
    for (int64_t od = slices.begin; od < slices.end; ++od) {
      const int64_t slice = z - od * d.stride + d.before;
      for (int64_t oh = lines.begin; oh < lines.end; ++oh) {
        const int64_t i = y - oh * h.stride + h.before;
        over[row].push_back(
            {od * h.out + oh, (slice * h.kernel + i) * shape.w.kernel});
      }
    }
  }
  return over;
}

static_assert(kNoArgmax == ops::kNoArgmax, "one byte, two names");
bool HasArgmax(const BoundOp& op) { return op.OutputCount("Argmax") > 0; }

}  // namespace kernels
}  // namespace halftone
