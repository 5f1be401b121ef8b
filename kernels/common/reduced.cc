#include "kernels/common/reduced.h"

namespace halftone {
namespace kernels {

std::vector<bool> NormAxes(const BoundOp& op) {
  const int rank = op.Input("X").rank();
  if (op.Bool("asvector")) return std::vector<bool>(rank, true);
  std::vector<bool> axes(rank, false);
  const int64_t axis = op.Int("axis");
  axes[axis < 0 ? axis + rank : axis] = true;
  return axes;
}

AlongAxis AlongAxisOf(const BoundOp& op) {
  const TensorDesc& x = op.Input("X");
  AlongAxis along;
  if (op.Bool("flatten")) {
    along.length = x.elements();
    return along;
  }
  int64_t axis = op.Int("axis");
  if (axis < 0) axis += x.rank();
  along.length = x.dims[axis];
  for (int i = 0; i < x.rank(); ++i) {
    if (i < axis) along.outer *= x.dims[i];
    if (i > axis) along.inner *= x.dims[i];
  }
  return along;
}

}  // namespace kernels
}  // namespace halftone
