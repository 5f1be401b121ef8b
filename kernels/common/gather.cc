#include "kernels/common/gather.h"

#include <algorithm>

#include "graph/schema/op_schema.h"
#include "runtime/device/device.h"

namespace halftone {
namespace kernels {

bool GathersRanks(const OpSchema& schema) {
  return schema.name() == "combine_stats" ||
         schema.name() == "combine_checks" || schema.name() == "dgc_sum";
}

GatherShape GatherShapeOf(const BoundOp& op) {
  const int64_t world = op.context().world_size, rank = op.context().rank;
  int64_t part = 0;
  for (const Slot& slot : op.schema().inputs()) {
    if (slot.shape_only()) continue;
    const int first = op.InputIndex(slot.name);
    for (int i = 0; i < op.InputCount(slot.name); ++i) {
      part += runtime::Aligned(op.inputs()[first + i].bytes());
    }
  }
  const auto attr = [&op](const char* name, int64_t unknown) {
    return op.KnowsAttr(name) ? op.Int(name) : unknown;
  };
  const int64_t replicas = attr("replicas", 1);
  int64_t group = attr("group_size", 0);
  if (group == 0) group = world;
  const int64_t first = rank / group * group;
  const int64_t count = std::min(group, world - first);
  return {first * part, replicas * part,
          static_cast<int>((count + replicas - 1) / replicas)};
}

}  // namespace kernels
}  // namespace halftone
