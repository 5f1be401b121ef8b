#include "passes/lower/clean_up.h"

#include <functional>
#include <iterator>

#include "passes/lower/fold_casts.h"
#include "passes/lower/fold_updates.h"
#include "passes/lower/share_equal.h"
#include "passes/lower/share_members.h"
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
    uint64_t shared = 0;  // the edit up to which equal ops were shared
    const std::function<bool()> sweeps[] = {
        [&] { return FoldUpdates(block, *kernels_); },
        [&] { return EraseDeadOps(block, held); },
        [&] {
          const bool did = ShareEqualOps(block, held, shared);
          shared = program.edit();
          // Nothing else makes two members one value.
          if (did) ShareMembers(block, held);
          return did;
        },
        [&] { return FoldCasts(block, *kernels_, held); },
    };
    // Each leaves nothing for itself, but can open the way for the others (a
    // shared op has one reader fewer): round and round, until all have seen
    // what the others did.
    constexpr int kSweeps = std::size(sweeps);
    int idle = 0;
    for (int i = 0; idle < kSweeps; i = (i + 1) % kSweeps) {
      const bool did = sweeps[i]();
      changed |= did;
      idle = did ? 1 : idle + 1;
    }
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
