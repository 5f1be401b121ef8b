// The new running statistics of batch norms, chained in the order in which
// norms are applied: within a step over its norms, and where a step has
// micro-batches over those.
#ifndef HALFTONE_PASSES_UPDATE_RUNNING_STATISTICS_H_
#define HALFTONE_PASSES_UPDATE_RUNNING_STATISTICS_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "graph/ir/program.h"

namespace halftone {
namespace passes {

// The cells in which micro-batches hand running statistics on, until the
// verdict on their step.
class PendingStatistics {
 public:
  explicit PendingStatistics(const Program& program);
  // Of the statistic; invalid: steps have no micro-batches.
  CellId Of(CellId statistic) const;
  const std::vector<CellId>& all() const { return all_; }

 private:
  std::vector<CellId> all_;
  absl::flat_hash_map<CellId, CellId> of_;
};

// Makes those cells, and what a micro-batch does to them in `accumulate`.
absl::Status AccumulateRunningStatistics(Entry& accumulate);

// In train: guarded updates, and their commits. Where there are such cells the
// chain goes on from them, and they get the step's result, too.
absl::Status UpdateRunningStatistics(Entry& train, ValueId found_inf);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_UPDATE_RUNNING_STATISTICS_H_
