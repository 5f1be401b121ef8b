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
  if (block.CountOf(plain) + block.CountOf(sync) == 0) return false;
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    const bool grouped =
        group_size_ == 0 ||
        (op.schema == sync && AttrAs<int64_t>(op, "group_size") == group_size_);
    if (op.schema != plain && (op.schema != sync || grouped)) continue;
    AttrList attrs;
    for (const auto& [index, value] : op.attrs) {
      SetAttr(*sync, op.schema->attrs()[index].name, value, &attrs);
    }
    if (group_size_ > 0) SetAttr(*sync, "group_size", group_size_, &attrs);
    block.SetSchema(id, sync);
    block.mutable_op(id).attrs = program.Intern(std::move(attrs));
    changed = true;
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
