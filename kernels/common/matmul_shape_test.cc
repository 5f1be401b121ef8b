#include "kernels/common/matmul_shape.h"

#include <tuple>
#include <vector>

#include "graph/base/dtype.h"
#include "graph/ir/program.h"
#include "graph/schema/op_builder.h"
#include "gtest/gtest.h"

namespace halftone {
namespace kernels {
namespace {

using Values = std::vector<double>;

Values Numbers(int64_t n) {
  Values values(n);
  for (int64_t i = 0; i < n; ++i) values[i] = static_cast<double>(i % 7 - 3);
  return values;
}

// By the strides of the matrices.
Values Multiply(const Product& p, const Values& x, const Values& y) {
  Values out(p.out.batch * p.out.rows * p.out.columns);
  for (int64_t b = 0; b < p.out.batch; ++b) {
    const int64_t x0 = b * p.x.batch_stride;
    const int64_t y0 = p.y.batch == 1 ? 0 : b * p.y.batch_stride;
    for (int64_t i = 0; i < p.out.rows; ++i) {
      for (int64_t j = 0; j < p.out.columns; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < p.x.columns; ++k) {
          sum += x[x0 + i * p.x.row_stride + k * p.x.column_stride] *
                 y[y0 + k * p.y.row_stride + j * p.y.column_stride];
        }
        out[b * p.out.batch_stride + i * p.out.row_stride + j] = sum;
      }
    }
  }
  return out;
}

// As BLAS computes D = op(A) * op(B) of matrices by columns, with A of y, B of
// x and D of out.
Values MultiplyByColumns(const Product& p, const Values& x, const Values& y) {
  const Stored a = StoredAs(p.y), b = StoredAs(p.x), d = StoredAs(p.out);
  EXPECT_FALSE(d.transposed);
  for (const Stored& m : {a, b, d}) EXPECT_GE(m.pitch, m.width);
  const auto at = [](const Stored& m, int64_t row, int64_t column) {
    return m.transposed ? row * m.pitch + column : column * m.pitch + row;
  };
  Values out(p.out.batch * p.out.rows * p.out.columns);
  for (int64_t batch = 0; batch < p.out.batch; ++batch) {
    const int64_t x0 = p.x.batch > 1 ? batch * p.x.batch_stride : 0;
    const int64_t y0 = p.y.batch > 1 ? batch * p.y.batch_stride : 0;
    const int64_t depth = a.transposed ? a.width : a.height;
    for (int64_t row = 0; row < d.width; ++row) {
      for (int64_t column = 0; column < d.height; ++column) {
        double sum = 0;
        for (int64_t k = 0; k < depth; ++k) {
          sum += y[y0 + at(a, row, k)] * x[x0 + at(b, k, column)];
        }
        out[batch * p.out.batch_stride + column * d.pitch + row] = sum;
      }
    }
  }
  return out;
}

void Check(std::vector<int64_t> x, std::vector<int64_t> y, bool trans_x,
           bool trans_y) {
  Program program;
  Block& block = program.AddEntry("test").block();
  const auto feed = [&](const char* name, const std::vector<int64_t>& dims) {
    TensorType type;
    type.dtype = DType::kF32;
    for (int64_t d : dims) type.dims.push_back(Dim(d));
    return block.AddFeed(name, type);
  };
  OpBuilder builder(&block, "matmul");
  builder.Name("op").In("X", feed("x", x)).In("Y", feed("y", y));
  builder.Attr("trans_x", trans_x).Attr("trans_y", trans_y).Out("Out", "out");
  const auto id = builder.Build();
  ASSERT_TRUE(id.ok()) << id.status();
  const BoundOp op(block, block.op(*id), SymbolValues(), BindContext());
  const Product p = MatmulOf(op);
  const Values x_values = Numbers(op.Input("X").elements());
  const Values y_values = Numbers(op.Input("Y").elements());
  EXPECT_EQ(MultiplyByColumns(p, x_values, y_values),
            Multiply(p, x_values, y_values))
      << ToString(op.Input("X")) << (trans_x ? "^T" : "") << " * "
      << ToString(op.Input("Y")) << (trans_y ? "^T" : "");
}

TEST(StoredAsTest, IsTheSameProductByColumns) {
  using Sizes = std::tuple<int64_t, int64_t, int64_t>;
  for (const auto& [m, k, n] :
       {Sizes(3, 4, 5), Sizes(1, 4, 5), Sizes(3, 1, 5), Sizes(3, 4, 1),
        Sizes(1, 1, 5), Sizes(3, 1, 1), Sizes(1, 4, 1), Sizes(1, 1, 1)}) {
    for (bool trans_x : {false, true}) {
      for (bool trans_y : {false, true}) {
        std::vector<int64_t> x = {m, k}, y = {k, n};
        if (trans_x) x = {k, m};
        if (trans_y) y = {n, k};
        Check(x, y, trans_x, trans_y);
        x.insert(x.begin(), 2);
        if (!trans_x) Check(x, y, false, trans_y);  // rows
        y.insert(y.begin(), 2);
        Check(x, y, trans_x, trans_y);  // a batch
      }
    }
  }
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
