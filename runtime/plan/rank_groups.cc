#include "runtime/plan/rank_groups.h"

#include <cstdint>

#include "graph/base/error.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace runtime {

absl::Status CheckRankGroups(const Entry& entry, int world_size) {
  const Block& block = entry.block();
  const OpSchema* combine = Ops().Find("combine_stats");
  if (block.CountOf(combine) == 0) return absl::OkStatus();
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (op.schema != combine) continue;
    const int64_t group = AttrAs<int64_t>(op, "group_size");
    if (group == 0 || world_size % group == 0) continue;
    return UsageError(
        "dist.sync_batch_norm_group_size ", group, " (", block.name(op),
        "): expected a number of ranks that is a multiple of it, found ",
        world_size,
        "; run on another number of ranks or compile with another "
        "size");
  }
  return absl::OkStatus();
}

}  // namespace runtime
}  // namespace halftone
