#include "kernels/common/matmul_shape.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace halftone {
namespace kernels {
namespace {

int64_t ProductOf(const TensorDesc& desc, int begin, int end) {
  return std::accumulate(desc.dims.begin() + begin, desc.dims.begin() + end,
                         int64_t{1}, std::multiplies<int64_t>());
}

// The last two dims are the matrix, swapped if `transposed`; those before
// are the batch, or rows too if `flat`.
Matrix MatrixOf(const TensorDesc& desc, bool transposed, bool flat) {
  const int rank = desc.rank();
  Matrix m;
  m.rows = desc.dims[rank - 2];
  m.columns = desc.dims[rank - 1];
  m.batch = ProductOf(desc, 0, rank - 2);
  if (flat) {
    m.rows *= m.batch;
    m.batch = 1;
  }
  m.row_stride = m.columns;
  m.batch_stride = m.rows * m.columns;
  if (transposed) {
    std::swap(m.rows, m.columns);
    std::swap(m.row_stride, m.column_stride);
  }
  return m;
}

}  // namespace

Product MatmulOf(const BoundOp& op) {
  const bool flat = op.Input("Y").rank() == 2;
  Product p;
  p.x = MatrixOf(op.Input("X"), op.Bool("trans_x"), flat);
  p.y = MatrixOf(op.Input("Y"), op.Bool("trans_y"), false);
  p.out = MatrixOf(op.Output("Out"), false, flat);
  return p;
}

Product MulOf(const BoundOp& op) {
  const auto matrix = [](const TensorDesc& desc, int64_t split) {
    Matrix m;
    m.rows = ProductOf(desc, 0, static_cast<int>(split));
    m.columns = ProductOf(desc, static_cast<int>(split), desc.rank());
    m.row_stride = m.columns;
    m.batch_stride = m.rows * m.columns;
    return m;
  };
  Product p;
  p.x = matrix(op.Input("X"), op.Int("x_num_col_dims"));
  p.y = matrix(op.Input("Y"), op.Int("y_num_col_dims"));
  p.out = matrix(op.Output("Out"), op.Int("x_num_col_dims"));
  return p;
}

Stored StoredAs(const Matrix& m) {
  const bool transposed = m.column_stride != 1;
  const int64_t height = transposed ? m.columns : m.rows;
  const int64_t width = transposed ? m.rows : m.columns;
  const int64_t pitch = transposed ? m.column_stride : m.row_stride;
  return {transposed, height, width, std::max(pitch, width)};
}

}  // namespace kernels
}  // namespace halftone
