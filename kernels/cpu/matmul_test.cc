// Products against plain loops in f64. Operands are eighths of small
// integers: every sum is exact in f32, so that whatever the order of additions
// the result is the exact one, rounded once.
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace kernels {
namespace {

using Values = std::vector<double>;
using Dims = std::vector<int64_t>;

struct Shape {
  const char* name;
  int64_t batch, m, k, n;
};

// Sizes about those of vector registers and tiles, and far from them.
const Shape kShapes[] = {
    {"scalar", 1, 1, 1, 1},      {"row", 1, 1, 37, 19},
    {"column", 1, 23, 41, 1},    {"outer", 1, 17, 1, 33},
    {"mlp", 1, 8, 32, 10},       {"square", 1, 64, 64, 64},
    {"ragged", 1, 65, 127, 47},  {"long_sum", 1, 3, 1568, 10},
    {"batched", 5, 7, 13, 9},    {"batched_tiles", 2, 32, 48, 64},
    {"many_rows", 1, 301, 5, 3}, {"batched_row", 3, 1, 16, 31},
};

// [batch, rows, columns] x [batch, columns, n], both as they are multiplied.
Values Multiply(const Shape& s, const Values& x, const Values& y,
                const Values& bias) {
  Values out;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j) {
        double sum = bias.empty() ? 0 : bias[j];
        for (int64_t k = 0; k < s.k; ++k) {
          sum += x[(b * s.m + i) * s.k + k] * y[(b * s.k + k) * s.n + j];
        }
        out.push_back(sum);
      }
    }
  }
  return out;
}

Values Transposed(const Values& x, int64_t batch, int64_t rows,
                  int64_t columns) {
  Values out;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t i = 0; i < rows; ++i) {
        out.push_back(x[(b * rows + i) * columns + j]);
      }
    }
  }
  return out;
}

class Matmul : public ::testing::TestWithParam<
                   std::tuple<Shape, DType, DType, const char*>> {
 protected:
  const Shape& shape() const { return std::get<0>(GetParam()); }
  DType dtype() const { return std::get<1>(GetParam()); }
  DType result() const { return std::get<2>(GetParam()); }
  const char* candidate() const { return std::get<3>(GetParam()); }

  // [rows, columns] per matrix, stored transposed if `transposed`.
  Tensor Matrix(const Values& values, int64_t rows, int64_t columns,
                bool transposed) const {
    Dims dims = {rows, columns};
    if (transposed) dims = {columns, rows};
    if (shape().batch > 1) dims.insert(dims.begin(), shape().batch);
    return {
        dtype(), dims,
        transposed ? Transposed(values, shape().batch, rows, columns) : values};
  }
  void Expect(KernelRun& run, const Values& expected) const {
    EXPECT_EQ(run.Get("Out"), Rounded(result(), expected));
    const std::string bytes = run.Bytes("Out");
    run.SpoilWorkspace();
    run.Enqueue();
    EXPECT_EQ(run.Bytes("Out"), bytes);
    run.MoveBuffers();
    run.Enqueue();
    EXPECT_EQ(run.Bytes("Out"), bytes);
  }

  Values x_ = Eighths(shape().batch * shape().m * shape().k, 0);
  Values y_ = Eighths(shape().batch * shape().k * shape().n, 1);
  Values bias_ = Eighths(shape().n, 2);
};

TEST_P(Matmul, EachTransposeWithAndWithoutBias) {
  const Shape& s = shape();
  for (int bits = 0; bits < 16; ++bits) {
    SCOPED_TRACE(bits);
    const bool trans_x = bits & 1, trans_y = bits & 2, bias = bits & 4;
    KernelRun run("matmul");
    run.In("X", Matrix(x_, s.m, s.k, trans_x))
        .In("Y", Matrix(y_, s.k, s.n, trans_y))
        .Attr("trans_x", trans_x)
        .Attr("trans_y", trans_y)
        .Bind("TOut", result())
        .Threads(bits & 8 ? 3 : 1)
        .Use(candidate());
    if (bias) run.In("Bias", {dtype(), {s.n}, bias_});
    Expect(run, Multiply(s, x_, y_, bias ? bias_ : Values()));
  }
}

TEST_P(Matmul, LeadingDimsAreRowsOfASharedMatrix) {
  const Shape& s = shape();
  const Values y(y_.begin(), y_.begin() + s.k * s.n);
  const Shape flat = {"", 1, s.batch * s.m, s.k, s.n};
  KernelRun run("matmul");
  run.In("X", {dtype(), {s.batch, s.m, s.k}, x_})
      .In("Y", {dtype(), {s.n, s.k}, Transposed(y, 1, s.k, s.n)})
      .In("Bias", {dtype(), {s.n}, bias_})
      .Attr("trans_y", true)
      .Bind("TOut", result())
      .Use(candidate());
  Expect(run, Multiply(flat, x_, y, bias_));
}

TEST_P(Matmul, MulFlattensBothSides) {
  const Shape& s = shape();
  const Values y(y_.begin(), y_.begin() + s.k * s.n);
  const Shape flat = {"", 1, s.batch * s.m, s.k, s.n};
  KernelRun run("mul");
  run.In("X", {dtype(), {s.batch, s.m, s.k, 1}, x_})
      .In("Y", {dtype(), {1, s.k, s.n}, y})
      .Attr("x_num_col_dims", int64_t{2})
      .Attr("y_num_col_dims", int64_t{2})
      .Bind("TOut", result())
      .Use(candidate());
  Expect(run, Multiply(flat, x_, y, {}));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Matmul,
    ::testing::Combine(
        ::testing::ValuesIn(kShapes),
        ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
        ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
        ::testing::Values("onednn", "reference")),
    [](const auto& info) {
      return absl::StrCat(
          std::get<0>(info.param).name, "_", Name(std::get<1>(info.param)),
          "_to_", Name(std::get<2>(info.param)), "_", std::get<3>(info.param));
    });

TEST(EmptyMatmul, NoRowsNoSumNoBatch) {
  KernelRun rows("matmul");
  rows.In("X", F16({0, 3}, {})).In("Y", F16({3, 2}, Values(6)));
  EXPECT_THAT(rows.Get("Out"), testing::IsEmpty());
  KernelRun sum("matmul");
  sum.In("X", BF16({2, 0}, {})).In("Y", BF16({0, 2}, {}));
  sum.In("Bias", BF16({2}, {1, -2}));
  EXPECT_EQ(sum.Get("Out"), (Values{1, -2, 1, -2}));
  KernelRun batch("matmul");
  batch.In("X", F32({0, 2, 3}, {})).In("Y", F32({0, 3, 4}, {}));
  EXPECT_THAT(batch.Get("Out"), testing::IsEmpty());
  KernelRun mul("mul");
  mul.In("X", F32({0, 3}, {})).In("Y", F32({3, 2}, Values(6)));
  EXPECT_THAT(mul.Get("Out"), testing::IsEmpty());
}

TEST(MatmulValues, InfinitiesAndNaNsSpread) {
  const double inf = INFINITY;
  for (const char* candidate : {"onednn", "reference"}) {
    KernelRun run("matmul");
    run.In("X", F16({2, 2}, {inf, 1, 1, 1}))
        .In("Y", F16({2, 1}, {0, 1}))
        .Use(candidate);
    const Values out = run.Get("Out");
    EXPECT_TRUE(std::isnan(out[0])) << candidate;
    EXPECT_EQ(out[1], 1) << candidate;
  }
  KernelRun overflow("matmul");
  overflow.In("X", F16({1, 2}, {60000, 60000})).In("Y", F16({2, 1}, {1, 1}));
  EXPECT_EQ(overflow.Value("Out"), inf);
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
