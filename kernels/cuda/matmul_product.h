// Matrix products as cuBLASLt is asked for them, as data: what each operand is
// by columns, and what is done to the product before it is stored.
#ifndef HALFTONE_KERNELS_CUDA_MATMUL_PRODUCT_H_
#define HALFTONE_KERNELS_CUDA_MATMUL_PRODUCT_H_

#include <cstdint>
#include <string>

#include "graph/base/dtype.h"
#include "kernels/common/matmul_shape.h"

namespace halftone {
namespace kernels {
namespace cuda {

// With p the product in f32, one bias for each of its rows by columns:
//   kGelu, kGeluAux   d = gelu(p + bias), by tanh; aux = p + bias, kept
//   kGeluGrad         d = p * gelu'(aux)
//   kReluGrad         d = p where the mask aux has a 1, else 0
//   kSumA, kSumB      d = p; sums over the rows of the operand a, or b
// Each result is rounded once, so what is kept is not what gelu was taken of.
enum class Epilogue {
  kNone,
  kBias,
  kGelu,
  kGeluAux,
  kGeluGrad,
  kReluGrad,
  kSumA,
  kSumB
};

// Where an operand is: a flat position among an op's inputs or outputs.
struct Place {
  int position = -1;
  bool output = false;
  bool there() const { return position >= 0; }
};

// A batch of matrices by columns, `pitch` elements from column to column.
struct ColumnMatrix {
  DType dtype = DType::kF32;
  int64_t rows = 0, columns = 0, pitch = 0;
  int64_t batch = 1, batch_stride = 0;  // 0: one matrix for the whole batch
  bool transposed = false;              // what is multiplied is the transpose
};

// d = epilogue(op(a) * op(b)). By rows that is out = x * y, with a of y, b of x
// and d of out: d's rows are out's columns.
struct BoundProduct {
  ColumnMatrix a, b, d;
  Place a_at, b_at, d_at;
  int64_t depth = 0;  // what a product adds up

  Epilogue epilogue = Epilogue::kNone;
  // Is added to each column of d, in its own dtype; at most in kBias and
  // kGelu*.
  Place bias_at;
  DType bias = DType::kF32;
  // Of kGelu*: what the gradient reads. Of kReluGrad: relu's output, from which
  // the mask is made. Both lie as d does.
  Place aux_at;
  // Sums of d's columns (kGeluGrad, kReluGrad) or of the operand's (kSum*), in
  // d's dtype; not there: nobody asked for them.
  Place sums_at;

  // Why no kernel takes a fusion, for people; empty: one does.
  std::string refused;

  int64_t elements() const { return d.batch * d.rows * d.columns; }
  // Elements from column to column of aux; of a mask bits.
  int64_t aux_pitch() const;
  // Bytes of the mask.
  int64_t mask_bytes() const;
  // The operand that kSum* adds: [length, count], the elements of a sum
  // `length` apart.
  const ColumnMatrix& summed() const;
};

BoundProduct BindProduct(const Product& product, DType x, DType y, DType out);
BoundProduct BindMatmul(const BoundOp& op);
BoundProduct BindMul(const BoundOp& op);
// Of the patterns matmul_gelu, matmul_gelu_grad, matmul_relu_grad and
// matmul_bias_grad.
BoundProduct BindMatmulFusion(const BoundOp& fusion);

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_MATMUL_PRODUCT_H_
