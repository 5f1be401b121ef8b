// Element-wise ops on tensors of one shape and dtype that read each other and
// nobody else does: one pass over memory instead of one per op.
#include <algorithm>

#include "passes/lower/patterns/pattern.h"

namespace halftone {
namespace passes {
namespace {

// A kernel keeps one running value per op in registers.
constexpr size_t kMaxOps = 16;

bool Fits(const Block& block, const Op& op, TypeId type) {
  if (!op.schema->element_wise() || op.schema->no_merge() ||
      op.outputs.all().size() != 1 || op.inputs.all().empty()) {
    return false;
  }
  const auto has_type = [&](ValueId v) { return block.type_id(v) == type; };
  return has_type(op.outputs.all()[0]) &&
         std::all_of(op.inputs.all().begin(), op.inputs.all().end(), has_type);
}

}  // namespace

OpGroup MatchElementwiseChain(const Block& block, OpId last,
                              const HeldValues& held) {
  const Op& root = block.op(last);
  if (root.outputs.all().size() != 1) return {};
  const TypeId type = block.type_id(root.outputs.all()[0]);
  if (!Fits(block, root, type) || !IsFloat(block.program().type(type).dtype)) {
    return {};
  }
  OpGroup group = {last};
  for (size_t i = 0; i < group.size(); ++i) {
    for (ValueId input : block.op(group[i]).inputs.all()) {
      const OpId producer = OnlyFor(block, group[i], input, held);
      if (!producer.valid() || group.size() == kMaxOps ||
          std::find(group.begin(), group.end(), producer) != group.end() ||
          !Fits(block, block.op(producer), type)) {
        continue;
      }
      group.push_back(producer);
    }
  }
  if (group.size() < 2) return {};
  return group;
}

}  // namespace passes
}  // namespace halftone
