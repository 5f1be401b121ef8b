#include "runtime/collective/reduce_by_nodes.h"

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "runtime/collective/shared_segment.h"

namespace halftone {
namespace runtime {
namespace {

constexpr char kField[] = "dist.hierarchical_allreduce_inter_nranks";

// From what machine each rank says that it is on.
absl::StatusOr<int> RanksOfEachMachine(
    const std::vector<std::string>& machines) {
  std::vector<int> sizes;
  for (size_t r = 0; r < machines.size(); ++r) {
    if (r == 0 || machines[r] != machines[r - 1]) sizes.push_back(0);
    ++sizes.back();
  }
  for (const int size : sizes) {
    if (size == sizes[0]) continue;
    return UsageError(
        kField,
        ": expected as many ranks on each node, one after the other, "
        "found ",
        absl::StrJoin(sizes, ", "),
        "; start as many on each, or set it to a number that divides ",
        machines.size());
  }
  return sizes[0];
}

}  // namespace

absl::StatusOr<int> ReduceByNodes(Communicator& communicator,
                                  int64_t ranks_per_node) {
  const int world_size = communicator.world_size();
  int found = static_cast<int>(ranks_per_node);
  if (ranks_per_node == 0) {
    HT_ASSIGN_OR_RETURN(const std::vector<std::string> machines,
                        communicator.AllGather(MachineId()));
    HT_ASSIGN_OR_RETURN(found, RanksOfEachMachine(machines));
  }
  if (found > world_size || world_size % found != 0) {
    return UsageError(kField, " ", ranks_per_node,
                      ": expected a number that divides that of the ranks, "
                      "found ",
                      world_size,
                      " ranks; set it to what each node has, or to 0, for "
                      "what is found");
  }
  HT_RETURN_IF_ERROR(communicator.ReduceByNodes(found));
  return found;
}

}  // namespace runtime
}  // namespace halftone
