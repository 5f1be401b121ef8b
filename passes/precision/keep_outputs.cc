#include "passes/precision/keep_outputs.h"

#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/ir/well_known.h"

namespace halftone {
namespace passes {
namespace {

absl::StatusOr<ValueId> Find(Program& program, Block& block,
                             const std::string& name) {
  const ValueId value = block.FindValue(name);
  if (value.valid()) return value;
  const CellId cell = program.FindCell(name);
  if (cell.valid()) return block.CellValue(cell);
  std::vector<std::string> names;
  for (int i = 0; i < block.value_limit(); ++i) {
    const Value& known = block.value(ValueId(i));
    if (!known.erased) names.emplace_back(block.name(known.id));
  }
  return UsageError("--fetch ", name, ": the model has no value of that name",
                    NearestHint(name, names));
}

// One sweep from the last op up; true: something went.
bool DropUnneeded(Block& block, std::vector<bool> needed) {
  bool changed = false;
  for (OpId id = block.last(); id.valid();) {
    const OpId previous = block.previous(id);
    const Op& op = block.op(id);
    bool keep = false;
    for (ValueId output : op.outputs.all()) keep |= needed[output.index()];
    if (keep) {
      for (ValueId input : op.inputs.all()) needed[input.index()] = true;
    } else {
      block.EraseOp(id);
      changed = true;
    }
    id = previous;
  }
  for (ValueId feed : block.Feeds()) {
    if (needed[feed.index()]) continue;
    block.EraseValue(feed);
    changed = true;
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> KeepOutputs::Run(Program& program) {
  Entry* const train = program.FindEntry(kTrainEntry);
  if (train == nullptr || names_.empty()) return false;
  Block& block = train->block();
  std::vector<ValueId> wanted;
  for (const std::string& name : names_) {
    HT_ASSIGN_OR_RETURN(const ValueId value, Find(program, block, name));
    wanted.push_back(value);
  }
  std::vector<bool> needed(block.value_limit());
  for (const ValueId value : wanted) needed[value.index()] = true;
  bool changed = program.outputs != names_ || !program.loss.var.empty() ||
                 !program.metrics.empty();
  program.outputs = names_;
  program.loss = LossInfo();
  program.metrics.clear();
  changed |= DropUnneeded(block, std::move(needed));
  return changed;
}

}  // namespace passes
}  // namespace halftone
