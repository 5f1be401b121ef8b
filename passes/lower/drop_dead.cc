#include "passes/lower/drop_dead.h"

#include <vector>

#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// From values that nothing reads: they are few, and a block's values lie side
// by side. An op is dead once the last op that needs it is gone.
bool DropDeadOf(Block& block, const HeldValues& held) {
  std::vector<OpId> unread;
  for (int i = 0; i < block.value_limit(); ++i) {
    const Value& value = block.value(ValueId(i));
    if (!value.erased && value.uses.empty() && value.op().valid()) {
      unread.push_back(value.op());
    }
  }
  bool changed = false;
  while (!unread.empty()) {
    const OpId id = unread.back();
    unread.pop_back();
    const Op& op = block.op(id);
    if (op.erased || !IsDead(block, op, held)) continue;
    for (ValueId input : op.inputs.all()) {
      const OpId producer = block.value(input).op();
      if (producer.valid()) unread.push_back(producer);
    }
    block.EraseOp(id);
    changed = true;
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> DropDead::Run(Program& program) {
  bool changed = false;
  for (const auto& entry : program.entries()) {
    const HeldValues held(*entry);
    changed |= DropDeadOf(entry->block(), held);
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
