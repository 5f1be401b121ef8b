#include "passes/lower/drop_dead.h"

#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {

// One sweep from the last op up: an op is needed if a later one is.
absl::StatusOr<bool> DropDead::Run(Program& program) {
  bool changed = false;
  for (const auto& entry : program.entries()) {
    Block& block = entry->block();
    const HeldValues held(*entry);
    for (OpId id = block.last(); id.valid();) {
      const Op& op = block.op(id);
      const OpId previous = block.previous(id);
      if (IsDead(block, op, held)) {
        block.EraseOp(id);
        changed = true;
      }
      id = previous;
    }
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
