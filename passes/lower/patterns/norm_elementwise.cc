// relu(scale_bias(X)), relu(scale_bias(X) + Y), relu(scale_bias(X) +
// scale_bias(Y)) and the sums without relu: one pass over memory.
#include "passes/lower/patterns/norm_conv.h"

namespace halftone {
namespace passes {
namespace {

// Adds what of the sum's two operands is a norm for it alone, if there is one.
void AddNorms(const Block& block, OpId sum, const HeldValues& held,
              OpGroup* group) {
  const Op& op = block.op(sum);
  const TypeId type = block.type_id(op.out(0));
  for (ValueId input : op.inputs.all()) {
    if (block.type_id(input) != type) return;
  }
  if (op.in(0) == op.in(1)) return;
  OpGroup norms;
  for (ValueId input : op.inputs.all()) {
    const OpId norm = OnlyFor(block, sum, input, held);
    if (IsOp(block, norm, "scale_bias")) norms.push_back(norm);
  }
  if (norms.empty()) return;
  group->insert(group->end(), norms.begin(), norms.end());
  group->push_back(sum);
}

}  // namespace

OpGroup MatchNormElementwise(const Block& block, OpId last,
                             const HeldValues& held) {
  OpGroup group;
  if (IsOp(block, last, "elementwise_add")) {
    AddNorms(block, last, held, &group);
    return group;
  }
  if (!IsOp(block, last, "relu")) return {};
  const OpId before = OnlyFor(block, last, block.op(last).in(0), held);
  if (IsOp(block, before, "scale_bias")) return {before, last};
  if (!IsOp(block, before, "elementwise_add")) return {};
  AddNorms(block, before, held, &group);
  if (!group.empty()) group.push_back(last);
  return group;
}

}  // namespace passes
}  // namespace halftone
