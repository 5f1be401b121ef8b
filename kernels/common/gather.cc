#include "kernels/common/gather.h"

#include "graph/schema/op_schema.h"
#include "runtime/device/device.h"

namespace halftone {
namespace kernels {

bool GathersRanks(const OpSchema& schema) {
  return schema.name() == "combine_stats" || schema.name() == "combine_checks";
}

GatherShape GatherShapeOf(const BoundOp& op) {
  GatherShape shape;
  shape.ranks = op.context().world_size;
  for (const TensorDesc& input : op.inputs()) {
    shape.stride_bytes += (input.bytes() + runtime::kAlignment - 1) /
                          runtime::kAlignment * runtime::kAlignment;
  }
  return shape;
}

}  // namespace kernels
}  // namespace halftone
