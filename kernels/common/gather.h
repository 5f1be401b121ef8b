// Ops whose kernels read what all ranks gave them: the planner gathers their
// inputs, and every rank computes the same from the same bytes.
#ifndef HALFTONE_KERNELS_COMMON_GATHER_H_
#define HALFTONE_KERNELS_COMMON_GATHER_H_

#include <cstdint>

#include "kernels/bound_op.h"

namespace halftone {
namespace kernels {

// Whether the op's inputs are gathered before its kernel runs.
bool GathersRanks(const OpSchema& schema);

// Kernels get rank 0's inputs; those of the r-th of the `ranks` that count lie
// first_bytes + r * stride_bytes behind them. All ranks count, but for
// attributes of the op: group_size, this rank's group alone; replicas, the
// first of so many.
struct GatherShape {
  int64_t first_bytes = 0;
  int64_t stride_bytes = 0;
  int ranks = 1;

  // Of the first rank that counts.
  const void* First(const void* rank0) const {
    return static_cast<const char*>(rank0) + first_bytes;
  }
};

// Members lie side by side in their order, each at a multiple of
// runtime::kAlignment.
GatherShape GatherShapeOf(const BoundOp& op);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_GATHER_H_
