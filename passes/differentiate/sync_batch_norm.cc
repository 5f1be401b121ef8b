#include "passes/differentiate/sync_batch_norm.h"

#include <algorithm>
#include <utility>

#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_registry.h"

namespace halftone {
namespace passes {
namespace {

// Slots of the same names in the same order, so that an op of the one schema
// is an op of the other.
bool SameSlots(const OpSchema& a, const OpSchema& b) {
  const auto same = [](const Slot& x, const Slot& y) {
    return x.name == y.name && x.type == y.type;
  };
  return std::equal(a.inputs().begin(), a.inputs().end(), b.inputs().begin(),
                    b.inputs().end(), same) &&
         std::equal(a.outputs().begin(), a.outputs().end(), b.outputs().begin(),
                    b.outputs().end(), same);
}

}  // namespace

absl::StatusOr<bool> SyncBatchNorm::Run(Program& program) {
  Entry* train = program.FindEntry(kTrainEntry);
  if (train == nullptr) return false;
  const OpSchema* plain = Ops().Find("batch_norm");
  const OpSchema* sync = Ops().Find("sync_batch_norm");
  if (plain == nullptr || sync == nullptr || !SameSlots(*plain, *sync)) {
    return CompilerBug("batch_norm and sync_batch_norm differ in their slots");
  }
  bool changed = false;
  Block& block = train->block();
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    if (block.op(id).schema != plain) continue;
    AttrList attrs;
    for (const auto& [index, value] : block.op(id).attrs) {
      SetAttr(*sync, plain->attrs()[index].name, value, &attrs);
    }
    block.SetSchema(id, sync);
    block.mutable_op(id).attrs = program.Intern(std::move(attrs));
    changed = true;
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
