#include "kernels/common/grid_sampler.h"

#include "graph/schema/op_schema.h"

namespace halftone {
namespace kernels {

GridShape GridShape::Of(const BoundOp& op) {
  const TensorDesc& x = op.Input("X");
  const TensorDesc& grid = op.Input("Grid");
  GridShape shape;
  shape.images = x.dims[0];
  shape.channels = x.dims[1];
  shape.rows = grid.dims[1];
  shape.columns = grid.dims[2];
  shape.h.size = x.dims[2];
  shape.w.size = x.dims[3];
  const std::string& padding = op.Str("padding_mode");
  for (GridDim* dim : {&shape.h, &shape.w}) {
    dim->align_corners = op.Bool("align_corners");
    dim->nearest = op.Str("mode") == "nearest";
    dim->padding = padding == "border"       ? GridPadding::kBorder
                   : padding == "reflection" ? GridPadding::kReflection
                                             : GridPadding::kZeros;
  }
  return shape;
}

}  // namespace kernels
}  // namespace halftone
