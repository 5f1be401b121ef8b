#include "kernels/common/lookup.h"

namespace halftone {
namespace kernels {

LookupShape LookupShapeOf(const BoundOp& op) {
  const bool table = op.type() == "lookup_table_v2";
  // Of take_along_axis, whose columns have numbers of their own, and of its
  // gradient: `count` of each.
  const bool along = op.KnowsAttr("Axis");
  const TensorDesc& x = op.Input(table ? "W" : along ? "Input" : "X");
  int64_t axis = along ? op.Int("Axis") : 0;
  if (op.KnowsAttr("axis")) axis = op.Int("axis");
  if (op.KnowsAttr("dim")) axis = op.Int("dim");
  if (axis < 0) axis += x.rank();
  LookupShape shape;
  for (int i = 0; i < x.rank(); ++i) {
    if (i < axis) shape.outer *= x.dims[i];
    if (i > axis) shape.inner *= x.dims[i];
  }
  shape.size = x.dims[axis];
  const bool ids = table || op.type() == "scatter";
  const TensorDesc& index = op.Input(ids ? "Ids" : "Index");
  shape.count = along ? index.dims[axis] : index.elements();
  if (op.KnowsAttr("padding_idx")) shape.padding = op.Int("padding_idx");
  shape.from_end = !table;
  return shape;
}

}  // namespace kernels
}  // namespace halftone
