#include "kernels/common/resize.h"

#include "absl/strings/match.h"
#include "graph/base/layout.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace kernels {

ResizeShape ResizeShape::Of(const BoundOp& op) {
  const bool gradient = op.schema().FindInput("OutGrad") >= 0;
  const TensorDesc& x = gradient ? op.Output("XGrad") : op.Input("X");
  const TensorDesc& out = gradient ? op.Input("OutGrad") : op.Output("Out");
  const int spatial = x.rank() - 2;
  ResizeShape shape;
  const bool last = x.layout == Layout::kChannelsLast;
  shape.planes = last ? x.dims[0] : x.dims[0] * x.dims[1];
  shape.channels = last ? x.dims[1] : 1;
  const auto scale = op.Floats("scale");
  for (int i = 0; i < spatial; ++i) {
    ResizeDim& dim = shape.dims[3 - spatial + i];
    dim.in = x.dims[2 + i];
    dim.out = out.dims[2 + i];
    dim.nearest = absl::StartsWith(op.type(), "nearest");
    dim.align_corners = op.Bool("align_corners");
    dim.cubic = absl::StartsWith(op.type(), "bicubic");
    dim.centered =
        !dim.align_corners && (dim.cubic || op.Int("align_mode") == 0);
    const float in = static_cast<float>(dim.in);
    const float sizes = static_cast<float>(dim.out);
    // A single element is the first, as Paddle has it.
    if (dim.out == 1) {
      dim.ratio = 0;
    } else if (dim.align_corners) {
      dim.ratio = (in - 1) / (sizes - 1);
    } else if (scale.empty()) {
      dim.ratio = in / sizes;
    } else {
      dim.ratio = 1.0f / static_cast<float>(scale[scale.size() == 1 ? 0 : i]);
    }
  }
  return shape;
}

}  // namespace kernels
}  // namespace halftone
