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

// Kernels get rank 0's inputs; rank r's lie r * stride_bytes behind them.
struct GatherShape {
  int64_t stride_bytes = 0;
  int ranks = 1;
};

// Members lie side by side in their order, each at a multiple of
// runtime::kAlignment.
GatherShape GatherShapeOf(const BoundOp& op);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_GATHER_H_
