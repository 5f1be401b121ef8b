#include "kernels/common/fusion_body.h"

#include <vector>

namespace halftone {
namespace kernels {

BoundOp FirstOfBody(const BoundOp& fusion) {
  const Block& body = *fusion.op().body;
  return BoundOp(body, body.op(body.first()), fusion.symbols(),
                 fusion.context());
}

int ArgumentPosition(const Block& body, ValueId value) {
  const std::vector<ValueId> arguments = body.Feeds();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == value) return static_cast<int>(i);
  }
  return -1;
}

int ArgumentPosition(const BoundOp& body_op, absl::string_view slot) {
  const int input = body_op.InputIndex(slot);
  if (input < 0) return -1;
  return ArgumentPosition(body_op.block(), body_op.op().inputs.all()[input]);
}

}  // namespace kernels
}  // namespace halftone
