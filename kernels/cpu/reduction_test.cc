// What is done along an axis, of rows side by side and of columns: lengths with
// and without a rest behind whole vectors, all float dtypes, any threads.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "gtest/gtest.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace kernels {
namespace {

using Ints = std::vector<int64_t>;
using Values = std::vector<double>;

const DType kFloats[] = {DType::kF32, DType::kBF16, DType::kF16};
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// Line (outer, inner) of a tensor of `length` along its second of three axes.
Values Line(const Values& x, int64_t length, int64_t inner, int64_t i) {
  Values line(length);
  for (int64_t k = 0; k < length; ++k) {
    line[k] = x[i / inner * length * inner + k * inner + i % inner];
  }
  return line;
}

struct Dims {
  int64_t outer, length, inner;
  int64_t elements() const { return outer * length * inner; }
};
// Rows (inner 1) and columns.
const Dims kDims[] = {{1, 1, 1},   {3, 2, 1},     {5, 7, 1},    {9, 8, 1},
                      {17, 13, 1}, {20, 28, 1},   {8, 32, 1},   {7, 33, 1},
                      {3, 100, 1}, {11, 1024, 1}, {2, 2500, 1}, {2, 20000, 1},
                      {2, 5, 3},   {1, 6, 2100},  {3, 9, 77},   {1, 130, 300},
                      {40, 3, 8}};

// Eighths, so that no sum is rounded in f32, and many are equal.
Values ValuesOf(const Dims& dims) { return Eighths(dims.elements(), 7); }

// `op` along the second axis against `expected` of each line, for all dtypes,
// by the same bits on one thread and on three.
template <typename Expected>
void ExpectLines(const char* op, const Dims& dims, const Values& x,
                 const std::vector<std::pair<const char*, AttrValue>>& attrs,
                 double tolerance, const Expected& expected) {
  for (const DType dtype : kFloats) {
    const Values stored = Rounded(dtype, x);
    std::string bytes;
    for (const int threads : {1, 3}) {
      KernelRun run(op);
      run.In("X", {dtype, {dims.outer, dims.length, dims.inner}, x})
          .Threads(threads);
      for (const auto& [name, value] : attrs) run.Attr(name, value);
      const Values out = run.Get("Out");
      ASSERT_EQ(out.size(), static_cast<size_t>(dims.outer * dims.inner));
      for (int64_t i = 0; i < dims.outer * dims.inner; ++i) {
        const double value =
            expected(Line(stored, dims.length, dims.inner, i), dtype);
        if (std::isnan(value)) {
          EXPECT_TRUE(std::isnan(out[i])) << op << " " << dims.length;
        } else {
          EXPECT_NEAR(out[i], value, tolerance * std::fabs(value))
              << op << " " << Name(dtype) << " " << dims.length << " x "
              << dims.inner << " at " << i;
        }
      }
      if (bytes.empty()) bytes = run.Bytes("Out");
      EXPECT_EQ(run.Bytes("Out"), bytes);
    }
  }
}

const std::vector<std::pair<const char*, AttrValue>> kSecond = {
    {"dim", Ints{1}}};
double Stored(double x, DType dtype) { return Rounded(dtype, {x})[0]; }

TEST(ReduceLinesTest, Sums) {
  for (const Dims& dims : kDims) {
    ExpectLines("reduce_sum", dims, ValuesOf(dims), kSecond, 0,
                [](const Values& line, DType dtype) {
                  return Stored(std::accumulate(line.begin(), line.end(), 0.0),
                                dtype);
                });
  }
}

TEST(ReduceLinesTest, ExtremesAndNaNs) {
  for (const Dims& dims : kDims) {
    for (const bool with_nans : {false, true}) {
      Values x = ValuesOf(dims);
      for (size_t i = 5; with_nans && i < x.size(); i += 41) x[i] = kNaN;
      const auto extreme = [](bool greatest) {
        return [greatest](const Values& line, DType) {
          double best = line[0];
          for (double v : line) {
            if (std::isnan(v) || std::isnan(best)) return kNaN;
            best = greatest ? std::max(best, v) : std::min(best, v);
          }
          return best;
        };
      };
      ExpectLines("reduce_max", dims, x, kSecond, 0, extreme(true));
      ExpectLines("reduce_min", dims, x, kSecond, 0, extreme(false));
    }
  }
}

TEST(ReduceLinesTest, Products) {
  for (const Dims& dims : kDims) {
    Values x = ValuesOf(dims);  // powers of two: products are exact
    for (double& v : x) v = v < 0 ? -1 : 1;
    if (!x.empty()) x[0] = 2;
    ExpectLines("reduce_prod", dims, x, kSecond, 0,
                [](const Values& line, DType) {
                  double product = 1;
                  for (double v : line) product *= v;
                  return product;
                });
  }
}

TEST(ReduceLinesTest, Norms) {
  for (const Dims& dims : kDims) {
    for (const double order : {0.0, 1.0, 2.0, 3.0, 4.0, 8.0, 9.0, 2.5, kInf}) {
      ExpectLines(
          "p_norm", dims, ValuesOf(dims), {{"axis", 1}, {"porder", order}},
          // A unit in the last place of bf16.
          0x1p-7, [order](const Values& line, DType) {
            double sum = 0, most = 0;
            for (double v : line) {
              sum += order == 0 ? v != 0 : std::pow(std::fabs(v), order);
              most = std::max(most, std::fabs(v));
            }
            if (order == kInf) return most;
            return order == 0 ? sum : std::pow(sum, 1 / order);
          });
    }
  }
}

// |x|^n by products is as near as pow: 1.5 units in the last place of f32.
TEST(ReduceLinesTest, NormsOfWholeOrdersAreAccurate) {
  const Values x = Rounded(DType::kF32, Draws(64 * 28, -3, 3));
  for (const double order : {3.0, 5.0, 8.0}) {
    KernelRun run("p_norm");
    run.In("X", F32({64, 28}, x)).Attr("porder", order);
    const Values out = run.Get("Out");
    for (int64_t r = 0; r < 64; ++r) {
      double sum = 0;
      for (int64_t i = 0; i < 28; ++i) {
        sum += std::pow(std::fabs(x[r * 28 + i]), order);
      }
      const double norm = std::pow(sum, 1 / order);
      EXPECT_NEAR(out[r], norm, norm * 0x1.8p-23) << order;
    }
  }
}

TEST(ArgLinesTest, FirstOfEqualsAndFirstNaN) {
  for (const Dims& dims : kDims) {
    for (const bool with_nans : {false, true}) {
      Values x = ValuesOf(dims);
      for (size_t i = 5; with_nans && i < x.size(); i += 41) x[i] = kNaN;
      const auto place = [](bool greatest) {
        return [greatest](const Values& line, DType) {
          size_t best = 0;
          for (size_t i = 1; i < line.size(); ++i) {
            if (std::isnan(line[best])) break;
            const bool beyond =
                greatest ? line[i] > line[best] : line[i] < line[best];
            if (beyond || std::isnan(line[i])) best = i;
          }
          return static_cast<double>(best);
        };
      };
      ExpectLines("arg_max", dims, x, {{"axis", 1}}, 0, place(true));
      ExpectLines("arg_min", dims, x, {{"axis", 1}}, 0, place(false));
    }
  }
}

TEST(CumsumTest, EitherWayAlongRowsAndColumns) {
  for (const Dims& dims : kDims) {
    const Values x = ValuesOf(dims);
    for (const DType dtype : kFloats) {
      for (const bool exclusive : {false, true}) {
        for (const bool reverse : {false, true}) {
          KernelRun run("cumsum");
          run.In("X", {dtype, {dims.outer, dims.length, dims.inner}, x})
              .Attr("axis", 1)
              .Attr("exclusive", exclusive)
              .Attr("reverse", reverse)
              .Threads(2);
          const Values out = run.Get("Out");
          for (int64_t i = 0; i < dims.outer * dims.inner; ++i) {
            const Values found = Line(out, dims.length, dims.inner, i);
            Values line = Line(x, dims.length, dims.inner, i), sums(line);
            if (reverse) std::reverse(line.begin(), line.end());
            double sum = 0;
            for (size_t k = 0; k < line.size(); ++k) {
              sums[k] = exclusive ? sum : sum + line[k];
              sum += line[k];
            }
            if (reverse) std::reverse(sums.begin(), sums.end());
            ASSERT_EQ(found, Rounded(dtype, sums))
                << Name(dtype) << " " << dims.length << " x " << dims.inner;
          }
        }
      }
    }
  }
}

// NaNs first, then descending; of equals, -0 and 0 too, the lower place.
TEST(TopKTest, AnyRowsAndTies) {
  const auto expect = [](const Values& row, int64_t k) {
    const int64_t n = static_cast<int64_t>(row.size());
    Ints order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const bool a_nan = std::isnan(row[a]), b_nan = std::isnan(row[b]);
      return a_nan != b_nan ? a_nan : row[a] > row[b];
    });
    KernelRun run("top_k");
    run.In("X", F32({1, n}, row)).Attr("k", k);
    const Values found = run.Get("Indices");
    for (int64_t i = 0; i < k; ++i) {
      ASSERT_EQ(found[i], order[i]) << n << " " << k << " " << i;
    }
  };
  for (const int64_t n : {5, 63, 64, 65, 100, 784, 1500}) {
    for (const int64_t k : {1, 2, 5, 16, 17, 40}) {
      if (k > n) continue;
      expect(Rounded(DType::kF32, Draws(n, -3, 3)), k);
      expect(Eighths(n), k);
      expect(Values(n, 0.5), k);
      Values x(n, -kInf);
      expect(x, k);
      x = Draws(n, -1, -0.5);
      for (int64_t i = 0; i < n; i += 3) x[i] = i % 2 == 0 ? 0.0 : -0.0;
      expect(Rounded(DType::kF32, x), k);
      for (int64_t i = 1; i < n; i += 7) x[i] = kNaN;
      expect(Rounded(DType::kF32, x), k);
      expect(Values(n, kNaN), k);
    }
  }
}

TEST(JoinTest, ElementsSideBySideThereAndBack) {
  const int64_t n = 101;
  for (const DType dtype : {DType::kF16, DType::kF32, DType::kI64}) {
    for (const int parts : {2, 3, 4, 5}) {
      KernelRun stack("stack");
      Values expected(n * parts);
      for (int k = 0; k < parts; ++k) {
        Values x(n);
        for (int64_t i = 0; i < n; ++i) {
          x[i] = expected[i * parts + k] = static_cast<double>(i * 3 + k);
        }
        stack.In("X", {dtype, {n}, x});
      }
      stack.Attr("axis", -1);
      EXPECT_EQ(stack.Get("Y"), expected);
    }
  }
}

// A row's border columns, rows that several others went to, low dtypes.
TEST(PadGradTest, OfSixteenBitsAsOfF32) {
  for (const char* mode : {"constant", "reflect", "replicate", "circular"}) {
    const Ints dims = {2, 3, 2, 5, 9}, padded = {2, 3, 2, 8, 14};
    const Values x(2 * 3 * 2 * 5 * 9), grad = Eighths(2 * 3 * 2 * 8 * 14, 3);
    Values expected;
    for (const DType dtype : kFloats) {
      KernelRun run("pad3d_grad");
      run.In("X", {dtype, dims, x})
          .In("OutGrad", {dtype, padded, grad})
          .Attr("paddings", Ints{3, 2, 1, 2, 0, 0})
          .Attr("mode", mode)
          .Threads(2);
      const Values found = run.Get("XGrad");
      if (dtype == DType::kF32) expected = found;
      EXPECT_EQ(found, Rounded(dtype, expected)) << mode << Name(dtype);
    }
    EXPECT_EQ(std::accumulate(expected.begin(), expected.end(), 0.0),
              mode == std::string("constant")
                  ? std::accumulate(expected.begin(), expected.end(), 0.0)
                  : std::accumulate(grad.begin(), grad.end(), 0.0))
        << mode;
  }
}

TEST(CompareTest, SixteenBitsWithRestsAndNaNs) {
  const int64_t n = 45;
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    Values x = Eighths(n), y = Eighths(n, 2), equal(n), less(n), above(n);
    x[3] = y[3] = x[40] = y[20] = kNaN;
    x[5] = -0.0, y[5] = 0.0;
    for (int64_t i = 0; i < n; ++i) {
      equal[i] = x[i] == y[i];
      less[i] = x[i] < y[i];
      above[i] = x[i] > 0.25;
    }
    KernelRun is_equal("equal"), is_less("less_than"), is_above("greater_than");
    is_equal.In("X", {dtype, {n}, x}).In("Y", {dtype, {n}, y});
    EXPECT_EQ(is_equal.Get("Out"), equal);
    is_less.In("X", {dtype, {n}, x}).In("Y", {dtype, {n}, y});
    EXPECT_EQ(is_less.Get("Out"), less);
    is_above.In("X", {dtype, {n}, x}).In("Y", {dtype, {1}, {0.25}});
    EXPECT_EQ(is_above.Get("Out"), above);
  }
}

// Rows that are not named go in runs between those that are.
TEST(ScatterTest, RunsBetweenNamedRows) {
  const int64_t rows = 50, width = 3;
  Values x(rows * width), updates = Eighths(5 * width);
  std::iota(x.begin(), x.end(), 100);
  for (const Values& ids : {Values{0, 7, 8, 20, 49}, Values{1, 2, 3, 4, 48},
                            Values{5, 5, 5, 5, 5}}) {
    for (const int threads : {1, 3}) {
      Values expected = x;
      for (size_t i = 0; i < ids.size(); ++i) {
        std::copy_n(&updates[i * width], width,
                    &expected[static_cast<size_t>(ids[i]) * width]);
      }
      KernelRun run("scatter");
      run.In("X", F32({rows, width}, x))
          .In("Ids", I64({5}, ids))
          .In("Updates", F32({5, width}, updates))
          .Threads(threads);
      EXPECT_EQ(run.Get("Out"), expected) << threads;
    }
  }
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
