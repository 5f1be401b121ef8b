// Sums over ranks in two levels, for a run whose ranks are on several nodes.
#ifndef HALFTONE_RUNTIME_COLLECTIVE_REDUCE_BY_NODES_H_
#define HALFTONE_RUNTIME_COLLECTIVE_REDUCE_BY_NODES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/collective/communicator.h"

namespace halftone {
namespace runtime {

// A collective: Communicator::ReduceByNodes with `ranks_per_node`, or, where it
// is 0, with as many as the machines have. Returns how many these are. Errors
// (kUsage, the same on all ranks) name the numbers: `ranks_per_node` does not
// divide the world size, or the machines do not have as many consecutive ranks
// each.
absl::StatusOr<int> ReduceByNodes(Communicator& communicator,
                                  int64_t ranks_per_node);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COLLECTIVE_REDUCE_BY_NODES_H_
