#include "kernels/common/join.h"

#include "kernels/common/shapes.h"

namespace halftone {
namespace kernels {

Join JoinOf(const BoundOp& op, bool cuts) {
  const TensorDesc& whole = cuts ? op.inputs()[0] : op.outputs()[0];
  const Around around = AroundAxis(whole, op.Int("axis"));
  Join join;
  join.outer = around.outer;
  join.row = around.row();
  for (const TensorDesc& part : cuts ? op.outputs() : op.inputs()) {
    join.parts.push_back(join.outer == 0 ? 0 : part.bytes() / join.outer);
  }
  return join;
}

}  // namespace kernels
}  // namespace halftone
