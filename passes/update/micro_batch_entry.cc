#include "passes/update/micro_batch_entry.h"

#include "absl/strings/match.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {

bool IsSummed(const Op& op) {
  return IsReduction(op, "gradient") || IsReduction(op, "totals");
}

MicroBatchEntry::MicroBatchEntry(const Block& train, Entry& entry)
    : from_(&train), entry_(&entry), map_(train.value_limit()) {}

absl::StatusOr<MicroBatchEntry> MicroBatchEntry::Add(Program& program,
                                                     const Block& train,
                                                     const std::string& why,
                                                     bool (*stops)(const Op&)) {
  if (!program.loss.denominators.empty()) {
    return ModelError(
        program.file, ": ", why, ": the loss has the denominator ",
        program.loss.denominators[0],
        ", whose total over a step is needed before its first micro-batch; "
        "leave that setting or the loss's denominators out");
  }
  MicroBatchEntry made(train, program.AddEntry(kAccumulateEntry));
  for (ValueId feed : train.Feeds()) {
    if (!absl::StartsWith(train.name(feed), "@")) made.Map(feed);
  }
  for (OpId id : train.ops()) {
    const Op& op = train.op(id);
    if (!stops(op)) made.CopyOp(op);
  }
  return made;
}

ValueId MicroBatchEntry::Map(ValueId value) {
  ValueId& mapped = map_[value.index()];
  if (mapped.valid()) return mapped;
  Block& to = entry_->block();
  const Value& v = from_->value(value);
  if (v.definition == Definition::kFeed) {
    mapped = to.AddFeed(from_->name(value), from_->type(value));
  } else if (v.definition == Definition::kConstant) {
    mapped = to.ConstantValue(ConstantId(v.index));
  } else if (v.definition == Definition::kCell) {
    mapped = to.CellValue(v.cell());
  }
  return mapped;
}

void MicroBatchEntry::CopyOp(const Op& op) {
  for (ValueId input : op.inputs.all()) {
    if (!Map(input).valid()) return;
  }
  Block& to = entry_->block();
  const OpId id = to.CopyOp(
      op, *from_, [this](ValueId value) { return map_[value.index()]; });
  const auto outputs = op.outputs.all();
  for (size_t i = 0; i < outputs.size(); ++i) {
    map_[outputs[i].index()] = to.op(id).outputs.all()[i];
  }
}

}  // namespace passes
}  // namespace halftone
