#include "passes/lower/clean_up.h"

#include <functional>
#include <iterator>

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
    const OpId previous = block.previous(id);
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
    const std::function<bool()> sweeps[] = {
        [&] { return EraseDeadOps(block, held); },
        [&] { return ShareEqualOps(block, held); },
        [&] { return FoldUpdates(block, *kernels_); },
        [&] { return FoldCasts(block, *kernels_, held); },
    };
    // Each can open the way for another (a shared op has one reader fewer):
    // round and round, until all have seen the program as it is.
    constexpr int kSweeps = std::size(sweeps);
    int idle = 0;
    for (int i = 0; idle < kSweeps; i = (i + 1) % kSweeps) {
      const bool did = sweeps[i]();
      changed |= did;
      idle = did ? 0 : idle + 1;
    }
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
