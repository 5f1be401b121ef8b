#include "kernels/common/fusion_body.h"

#include <vector>

namespace halftone {
namespace kernels {

BoundOp FirstOfBody(const BoundOp& fusion) {
  const Block& body = *fusion.op().body;
  return BoundOp(body, body.op(body.first()), fusion.symbols(),
                 fusion.context());
}

std::vector<BoundOp> OpsOfBody(const BoundOp& fusion, absl::string_view type) {
  const Block& body = *fusion.op().body;
  std::vector<BoundOp> ops;
  for (OpId id = body.first(); id.valid(); id = body.next(id)) {
    if (body.op(id).schema->name() != type) continue;
    ops.emplace_back(body, body.op(id), fusion.symbols(), fusion.context());
  }
  return ops;
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

int ResultPosition(const BoundOp& body_op, absl::string_view slot) {
  const int output = body_op.OutputIndex(slot);
  const std::vector<ValueId>& results = body_op.block().body_results();
  for (size_t i = 0; output >= 0 && i < results.size(); ++i) {
    if (results[i] == body_op.op().outputs.all()[output]) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

}  // namespace kernels
}  // namespace halftone
