// How a matrix product's operands lie, for every kernel that holds one.
#ifndef HALFTONE_KERNELS_CPU_MATMUL_H_
#define HALFTONE_KERNELS_CPU_MATMUL_H_

#include "kernels/cpu/onednn.h"

namespace halftone {
namespace kernels {

// Flat positions in the buffers of the op (or fusion) that runs a matmul. -1:
// no bias.
struct MatmulPositions {
  int x = 0, y = 1, bias = -1;
};
// `op` is the matmul itself or that of a fusion's body.
OnednnSpec MatmulForward(const BoundOp& op, const MatmulPositions& at);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_MATMUL_H_
