#include "passes/lower/forward_part.h"

#include <algorithm>

#include "graph/schema/op_schema.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {

bool ReadsContent(const Op& op, int input) {
  return !op.schema->inputs()[op.inputs.SlotOf(input)].shape_only();
}

bool IsPlainView(const Block& block, const Op& op) {
  if (!op.schema->view() || op.body != nullptr) return false;
  const TensorType& in = block.type(op.inputs.all()[0]);
  const TensorType& out = block.type(op.outputs.all()[0]);
  return in.dtype == out.dtype && in.layout == Layout::kRowMajor &&
         out.layout == Layout::kRowMajor;
}

ForwardPart::ForwardPart(const Entry& train)
    : block_(train.block()),
      ops_(block_.ops()),
      places_(block_.op_limit(), -1),
      repeatable_(block_.op_limit()),
      backward_(static_cast<int>(ops_.size())) {
  const HeldValues held(train);
  // What backward does with parameters alone may stand before the seed.
  bool seeded = OpsOfType(block_, "gradient_seed").empty();
  for (int place = 0; place < static_cast<int>(ops_.size()); ++place) {
    const Op& op = block_.op(ops_[place]);
    places_[op.id.index()] = place;
    if (seeded && op.role == Role::kBackward) {
      backward_ = std::min(backward_, place);
    }
    seeded = seeded || op.schema->name() == "gradient_seed";
  }
  for (int place = 0; place < backward_; ++place) {
    const Op& op = block_.op(ops_[place]);
    if (op.role != Role::kForward || op.schema->guarded()) continue;
    bool grows = false, is_held = false;
    for (ValueId out : op.outputs.all()) {
      grows |= IsReplaceable(out);
      is_held |= held.Has(out);
    }
    repeatable_[op.id.index()] = grows && !is_held;
  }
}

OpId ForwardPart::OwnerOf(ValueId value) const {
  OpId id = block_.value(value).op();
  while (id.valid() && IsPlainView(block_, block_.op(id))) {
    id = block_.value(block_.op(id).inputs.all()[0]).op();
  }
  return id;
}

}  // namespace passes
}  // namespace halftone
