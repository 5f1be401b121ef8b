// Layer and group norms of rows of any length against sums in double.
#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace kernels {
namespace {

using ::testing::Pointwise;
using Values = std::vector<double>;

constexpr double kEpsilon = 1e-5;

class RowLength : public ::testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Lengths, RowLength,
                         ::testing::Values(2, 7, 8, 15, 16, 17, 28, 32, 33, 50,
                                           63, 64, 100, 1024, 1500));

MATCHER_P(IsNear, bound, "") {
  const double found = std::get<0>(arg), exact = std::get<1>(arg);
  return std::abs(found - exact) <= bound * (1 + std::abs(exact));
}

// Rows of `groups` in turn, which have scales of their own. 4e-6: a few
// roundings of f32, divided by a deviation of 1 about.
TEST_P(RowLength, IsThatOfSums) {
  const int64_t c = GetParam();
  for (const int64_t groups : {1, 3}) {
    const int64_t rows = 37 * groups;
    const Values x = Rounded(DType::kF32, Draws(rows * c, 1, 5));
    const Values scale = Rounded(DType::kF32, Draws(groups * c, 1, 2));
    const Values bias = Rounded(DType::kF32, Draws(groups * c, -1, 1));
    for (const int affine : {0, 1, 2, 3}) {
      Values mean(rows), variance(rows), y(x.size());
      for (int64_t r = 0; r < rows; ++r) {
        const double* row = &x[r * c];
        for (int64_t i = 0; i < c; ++i) mean[r] += row[i] / c;
        for (int64_t i = 0; i < c; ++i) {
          variance[r] += std::pow(row[i] - mean[r], 2) / c;
        }
        for (int64_t i = 0; i < c; ++i) {
          const int64_t at = r % groups * c + i;
          const double factor = (affine & 1) != 0 ? scale[at] : 1;
          y[r * c + i] =
              (row[i] - mean[r]) / std::sqrt(variance[r] + kEpsilon) * factor +
              ((affine & 2) != 0 ? bias[at] : 0);
        }
      }
      KernelRun run(groups == 1 ? "layer_norm" : "group_norm");
      run.In("X", F32({37, groups * c}, x)).Attr("epsilon", kEpsilon);
      if (groups > 1) run.Attr("groups", groups);
      if ((affine & 1) != 0) run.In("Scale", F32({groups * c}, scale));
      if ((affine & 2) != 0) run.In("Bias", F32({groups * c}, bias));
      run.Threads(3);
      EXPECT_THAT(run.Get("Y"), Pointwise(IsNear(4e-6), y)) << affine;
      EXPECT_THAT(run.Get("Mean"), Pointwise(IsNear(4e-6), mean));
      EXPECT_THAT(run.Get("Variance"), Pointwise(IsNear(4e-6), variance));
    }
  }
}

// Worked on as they lie in memory, the last ones by way of a buffer; the output
// may take the input's place.
TEST_P(RowLength, SixteenBitsAreThoseOfF32Rounded) {
  const int64_t c = GetParam(), rows = 37;
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
    const Values x = Rounded(dtype, Draws(rows * c, -2, 2));
    for (const char* op : {"layer_norm", "rms_norm"}) {
      KernelRun whole(op), there(op);
      whole.In("X", F32({rows, c}, x)).Threads(3);
      there.In("X", {dtype, {rows, c}, x}).Alias("Y", "X");
      EXPECT_EQ(there.Get("Y"), Rounded(dtype, whole.Get("Y")))
          << op << " " << Name(dtype);
    }
  }
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
