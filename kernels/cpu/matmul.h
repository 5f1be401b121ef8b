// How a matrix product's operands lie, for every kernel that holds one.
#ifndef HALFTONE_KERNELS_CPU_MATMUL_H_
#define HALFTONE_KERNELS_CPU_MATMUL_H_

#include "kernels/common/matmul_shape.h"
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

// Where a product's operand is among a kernel's inputs (`out`: its outputs).
struct ProductOperand {
  int position = -1;  // -1: there is none
  DType dtype = DType::kInvalid;
};
// out = x * y + bias, all as they lie: what a reorder costs, a product rarely
// saves.
OnednnSpec ProductSpec(const Product& product, const ProductOperand& x,
                       const ProductOperand& y, const ProductOperand& out,
                       const ProductOperand& bias);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_MATMUL_H_
