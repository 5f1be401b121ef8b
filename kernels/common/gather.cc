#include "kernels/common/gather.h"

#include "graph/schema/op_schema.h"
#include "runtime/device/device.h"

namespace halftone {
namespace kernels {

bool GathersRanks(const OpSchema& schema) {
  return schema.name() == "combine_stats" ||
         schema.name() == "combine_checks" || schema.name() == "dgc_sum";
}

GatherShape GatherShapeOf(const BoundOp& op) {
  GatherShape shape;
  shape.ranks = op.context().world_size;
  for (const Slot& slot : op.schema().inputs()) {
    if (slot.shape_only()) continue;
    const int first = op.InputIndex(slot.name);
    for (int i = 0; i < op.InputCount(slot.name); ++i) {
      shape.stride_bytes +=
          (op.inputs()[first + i].bytes() + runtime::kAlignment - 1) /
          runtime::kAlignment * runtime::kAlignment;
    }
  }
  return shape;
}

}  // namespace kernels
}  // namespace halftone
