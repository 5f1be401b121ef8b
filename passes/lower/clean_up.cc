#include "passes/lower/clean_up.h"

#include "passes/lower/fold_casts.h"
#include "passes/lower/fold_updates.h"
#include "passes/lower/share_equal.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// One sweep from the last op up: an op is needed if a later one is.
bool EraseDeadOps(Block& block, const HeldValues& held) {
  bool changed = false;
  for (OpId id = block.last(); id.valid();) {
    const Op& op = block.op(id);
    const OpId previous = op.previous;
    if (IsDead(block, op, held)) {
      block.EraseOp(id);
      changed = true;
    }
    id = previous;
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> CleanUp::Run(Program& program) {
  bool changed = false;
  for (const auto& entry : program.entries()) {
    Block& block = entry->block();
    HeldValues held(*entry);
    // Each round can open the way for another (a shared op has one reader
    // fewer); the third of a real program finds nothing.
    for (bool again = true; again;) {
      again = EraseDeadOps(block, held);
      again |= ShareEqualOps(block, held);
      again |= FoldUpdates(block, *kernels_);
      again |= FoldCasts(block, *kernels_, held);
      changed |= again;
    }
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
