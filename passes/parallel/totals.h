// The one reduction of all that is counted in an entry.
#ifndef HALFTONE_PASSES_PARALLEL_TOTALS_H_
#define HALFTONE_PASSES_PARALLEL_TOTALS_H_

#include "absl/status/statusor.h"
#include "graph/ir/program.h"
#include "passes/options/options.h"

namespace halftone {
namespace passes {

// Ends the entry's forward part with one all_reduce of=totals and makes its
// results. In `train` it also carries the stop flag, and the statistics of
// unsynchronised batch norms are combined behind it, or rank 0's broadcast.
// False: there is one, or nothing to count.
absl::StatusOr<bool> InsertTotals(Program& program, Entry& entry,
                                  const proto::Dist& dist);

// How many ranks there are, where gradients are means over ranks.
inline constexpr char kRanks[] = "@ranks";

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PARALLEL_TOTALS_H_
