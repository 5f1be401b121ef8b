#include "passes/lower/forward_part.h"

#include <algorithm>

#include "graph/base/text.h"
#include "graph/schema/op_schema.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

template <typename Visit>
void VisitNames(const Block& block, const Op& op, const Visit& visit) {
  visit(op.name);
  for (NameId origin : op.origins) visit(origin);
  for (ValueId out : op.outputs.all()) visit(block.value(out).name);
  if (op.body == nullptr) return;
  for (OpId id = op.body->first(); id.valid(); id = op.body->next(id)) {
    VisitNames(*op.body, op.body->op(id), visit);
  }
}

}  // namespace

bool IsNamedBy(const google::protobuf::RepeatedPtrField<std::string>& globs,
               const Block& block, const Op& op) {
  bool matches = false;
  VisitNames(block, op, [&](NameId name) {
    for (const std::string& glob : globs) {
      matches = matches || GlobMatch(glob, block.program().name_of(name));
    }
  });
  return matches;
}

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
  bool seeded = CountOfType(block_, "gradient_seed") == 0;
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
    // What was packed would have to be there again.
    if (op.role != Role::kForward || op.schema->guarded() ||
        op.schema->name() == "quantize_groups") {
      continue;
    }
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
