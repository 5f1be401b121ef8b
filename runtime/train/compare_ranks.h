// Ranks that no longer hold the same state.
#ifndef HALFTONE_RUNTIME_TRAIN_COMPARE_RANKS_H_
#define HALFTONE_RUNTIME_TRAIN_COMPARE_RANKS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/collective/communicator.h"
#include "runtime/exec/executor.h"

namespace halftone {
namespace runtime {

// A cell of a rank that most ranks have otherwise.
struct DifferingCell {
  int rank = 0, cell = 0;  // the first such rank, and its first such cell
  int cells = 0;           // how many of that rank's cells differ
  bool outvoted = true;    // false: rank 0 has it otherwise, not most ranks
};
// `hashes`: of the same cells, in order, by rank. Where no value is that of
// most ranks, rank 0's counts.
std::optional<DifferingCell> FirstDifference(
    const std::vector<std::vector<uint64_t>>& hashes);

// A collective: compares hashes of all replicated cells (parameters, slots,
// statistics, scaler, clocks) over the ranks, 16 bytes a rank unless they
// differ. All ranks get the same error (kDiffer): `when` ("after step 500"),
// the rank, the cell and what to do. Of two ranks, or where no value of the
// cell is that of most, it says that rank 0 may be the wrong one.
absl::Status CompareRanks(Executor& executor, Communicator& communicator,
                          const std::string& when);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_COMPARE_RANKS_H_
