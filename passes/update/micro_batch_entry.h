// What a micro-batch does that is not the last of its step.
#ifndef HALFTONE_PASSES_UPDATE_MICRO_BATCH_ENTRY_H_
#define HALFTONE_PASSES_UPDATE_MICRO_BATCH_ENTRY_H_

#include <string>

#include "absl/status/statusor.h"
#include "graph/ir/program.h"
#include "passes/rewrite/copy_block.h"

namespace halftone {
namespace passes {

// Whether it reduces what is added up over the micro-batches of a step:
// gradients and totals.
bool IsSummed(const Op& op);

// The entry `accumulate`: forward and backward, that is train's ops but for
// those that `stops`, and what depends on them.
class MicroBatchEntry {
 public:
  // Errors (kModel): the loss has denominators, whose totals would be needed
  // before the first micro-batch; `why` names the setting.
  static absl::StatusOr<MicroBatchEntry> Add(Program& program,
                                             const Block& train,
                                             const std::string& why,
                                             bool (*stops)(const Op&));

  Entry& entry() { return *entry_; }
  // A value of train in it; invalid: it depends on what was left out.
  ValueId Map(ValueId value) { return copier_.Map(value); }

 private:
  MicroBatchEntry(const Block& train, Entry& entry);

  Entry* entry_;
  BlockCopier copier_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_UPDATE_MICRO_BATCH_ENTRY_H_
