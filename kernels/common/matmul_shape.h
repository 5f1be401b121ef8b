// How the operands of a matrix product lie.
#ifndef HALFTONE_KERNELS_COMMON_MATMUL_SHAPE_H_
#define HALFTONE_KERNELS_COMMON_MATMUL_SHAPE_H_

#include <cstdint>

#include "kernels/bound_op.h"

namespace halftone {
namespace kernels {

// A batch of matrices [batch, rows, columns] with strides in elements.
struct Matrix {
  int64_t batch = 1, rows = 1, columns = 1;
  int64_t batch_stride = 0, row_stride = 1, column_stride = 1;
};

// out = x * y; a y of one batch is shared by all of x.
struct Product {
  Matrix x, y, out;
};
Product MatmulOf(const BoundOp& op);
Product MulOf(const BoundOp& op);

// A matrix as it lies in memory: rows of `width` elements, `pitch` apart; what
// is asked for is its transpose if `transposed`. Libraries that take matrices
// by columns see it as width x height with leading dimension `pitch`: its
// transpose. They are asked for out^T = y^T * x^T, with the same `transposed`.
struct Stored {
  bool transposed;
  int64_t height, width, pitch;
};
Stored StoredAs(const Matrix& m);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_COMMON_MATMUL_SHAPE_H_
