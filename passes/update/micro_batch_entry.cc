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
    : entry_(&entry), copier_(train, entry.block()) {}

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
    if (!stops(op)) made.copier_.CopyOp(op);
  }
  return made;
}

}  // namespace passes
}  // namespace halftone
