// Ranks that share batch statistics in groups.
#ifndef HALFTONE_RUNTIME_PLAN_RANK_GROUPS_H_
#define HALFTONE_RUNTIME_PLAN_RANK_GROUPS_H_

#include "absl/status/status.h"
#include "graph/ir/program.h"

namespace halftone {
namespace runtime {

// Whether so many ranks form the groups that ops of the entry ask for
// (combine_stats' group_size). Errors (kUsage) name both numbers.
absl::Status CheckRankGroups(const Entry& entry, int world_size);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_PLAN_RANK_GROUPS_H_
