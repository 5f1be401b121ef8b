// Group and instance norms of channels-last images against sums in double.
#include <cmath>
#include <string>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace kernels {
namespace {

using ::testing::Pointwise;
using Dims = std::vector<int64_t>;
using Values = std::vector<double>;

constexpr double kEpsilon = 1e-5;

Tensor Image(DType dtype, Dims dims, Values values) {
  return {dtype, std::move(dims), std::move(values), Layout::kChannelsLast};
}

// What a group norm of x is, in double.
struct Exact {
  Exact(const Dims& dims, int64_t groups, const Values& x, const Values& dy,
        const Values& scale, const Values& bias) {
    const int64_t channels = dims[1], inner = dims[2] * dims[3];
    const int64_t length = channels / groups * inner;
    const auto row = [&](size_t i) { return i / length; };
    const auto channel = [&](size_t i) { return i / inner % channels; };
    mean = variance = Values(dims[0] * groups);
    scale_grad = bias_grad = Values(channels);
    for (size_t i = 0; i < x.size(); ++i) mean[row(i)] += x[i] / length;
    for (size_t i = 0; i < x.size(); ++i) {
      variance[row(i)] += std::pow(x[i] - mean[row(i)], 2) / length;
    }
    Values hat(x.size()), plain(mean.size()), weighted(mean.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const int64_t c = channel(i), r = row(i);
      hat[i] = (x[i] - mean[r]) / std::sqrt(variance[r] + kEpsilon);
      y.push_back(hat[i] * scale[c] + bias[c]);
      scale_grad[c] += dy[i] * hat[i];
      bias_grad[c] += dy[i];
      plain[r] += dy[i] * scale[c] / length;
      weighted[r] += dy[i] * scale[c] * hat[i] / length;
    }
    for (size_t i = 0; i < x.size(); ++i) {
      const int64_t r = row(i);
      dx.push_back(
          (dy[i] * scale[channel(i)] - plain[r] - hat[i] * weighted[r]) /
          std::sqrt(variance[r] + kEpsilon));
    }
  }
  Values mean, variance, y, dx, scale_grad, bias_grad;
};

// Within `bound` of the second, relative where that is above 1.
MATCHER_P(IsNear, bound, "") {
  const double found = std::get<0>(arg), exact = std::get<1>(arg);
  return std::abs(found - exact) <= bound * (1 + std::abs(exact));
}

int64_t Product(const Dims& dims) {
  int64_t n = 1;
  for (const int64_t d : dims) n *= d;
  return n;
}

struct Shape {
  Dims dims;
  int64_t groups;
};

// Whole vectors of channels and others, one chunk of pixels and several, more
// channels than are combined at a time.
const std::vector<Shape>& Shapes() {
  static const auto& shapes = *new std::vector<Shape>{
      {{2, 24, 13, 17}, 4}, {{3, 32, 11, 9}, 8}, {{2, 320, 5, 7}, 32},
      {{1, 6, 1, 1}, 2},    {{5, 16, 9, 9}, 1},  {{2, 1600, 3, 2}, 5},
  };
  return shapes;
}

// 4e-6: see norm_test.cc.
TEST(RowNormLast, NormAndGradient) {
  for (const auto& [dims, groups] : Shapes()) {
    SCOPED_TRACE(::testing::PrintToString(dims));
    const int64_t n = Product(dims), c = dims[1];
    const Values x = Rounded(DType::kF32, Draws(n, -2, 4));
    Values dy = Rounded(DType::kF32, Draws(n + 1));
    dy.resize(n);
    const Values scale = Rounded(DType::kF32, Draws(c, 0.5, 2));
    const Values bias = Rounded(DType::kF32, Draws(c));
    const Exact exact(dims, groups, x, dy, scale, bias);
    KernelRun norm("group_norm");
    norm.In("X", Image(DType::kF32, dims, x)).Attr("groups", groups);
    norm.In("Scale", F32({c}, scale)).In("Bias", F32({c}, bias));
    EXPECT_THAT(norm.Get("Y"), Pointwise(IsNear(4e-6), exact.y));
    EXPECT_THAT(norm.Get("Mean"), Pointwise(IsNear(4e-6), exact.mean));
    EXPECT_THAT(norm.Get("Variance"), Pointwise(IsNear(4e-6), exact.variance));
    KernelRun grad("group_norm_grad");
    grad.In("X", Image(DType::kF32, dims, x)).Attr("groups", groups);
    grad.In("YGrad", Image(DType::kF32, dims, dy)).In("Scale", F32({c}, scale));
    grad.In("Mean", F32({dims[0], groups}, exact.mean));
    grad.In("Variance", F32({dims[0], groups}, exact.variance));
    grad.Out("ScaleGrad").Out("BiasGrad");
    EXPECT_THAT(grad.Get("XGrad"), Pointwise(IsNear(4e-6), exact.dx));
    const double sums = 1e-6 * std::sqrt(n / c) + 1e-6;
    EXPECT_THAT(grad.Get("ScaleGrad"),
                Pointwise(IsNear(sums), exact.scale_grad));
    EXPECT_THAT(grad.Get("BiasGrad"), Pointwise(IsNear(sums), exact.bias_grad));
  }
}

// Deviations of 1 about a mean far from 0: what is left is the rounding of the
// channels' means.
TEST(RowNormLast, FarFromZero) {
  for (const double mean : {1e3, 1e5}) {
    const Dims dims = {2, 16, 12, 11};
    const Values x =
        Rounded(DType::kF32, Draws(Product(dims), mean - 2, mean + 2));
    const Exact exact(dims, 2, x, x, Values(16, 1), Values(16));
    KernelRun norm("group_norm");
    norm.In("X", Image(DType::kF32, dims, x)).Attr("groups", int64_t{2});
    EXPECT_THAT(norm.Get("Mean"), Pointwise(IsNear(1e-7), exact.mean));
    EXPECT_THAT(norm.Get("Variance"),
                Pointwise(IsNear(mean * 6e-8 + 1e-6), exact.variance));
    EXPECT_THAT(norm.Get("Y"), Pointwise(IsNear(mean * 1.2e-7), exact.y));
  }
}

// As the kernels of row_major images have it; 16-bit results are rounded once.
TEST(RowNormLast, MixturesOfDtypes) {
  const DType dtypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  const Dims dims = {2, 48, 5, 9};
  const int64_t n = Product(dims), groups = 6;
  Values dy = Draws(n + 1);
  dy.resize(n);
  const Values scale = Draws(48, 0.5, 2), means = Draws(12, 0, 1);
  const Values variances = Draws(12, 1, 2);
  for (const DType x : dtypes) {
    for (const DType y : dtypes) {
      for (const DType out : dtypes) {
        const auto get = [&](Layout layout, const char* slot) {
          const bool forward = std::string(slot) == "Y";
          KernelRun run(forward ? "group_norm" : "group_norm_grad");
          run.In("X", {x, dims, Draws(n, -2, 4), layout});
          if (!forward) run.In("YGrad", {y, dims, dy, layout});
          run.In("Scale", F32({48}, scale)).Attr("groups", groups);
          if (forward) return run.Bind("TOut", out).Get(slot);
          run.In("Mean", F32({2, groups}, means));
          run.In("Variance", F32({2, groups}, variances));
          if (std::string(slot) != "XGrad") run.Out(slot);
          return run.Bind("TX", out).Get(slot);
        };
        const double bound = out == DType::kBF16  ? 8e-3
                             : out == DType::kF16 ? 1e-3
                                                  : 4e-6;
        for (const char* slot : {"Y", "XGrad"}) {
          EXPECT_THAT(get(Layout::kChannelsLast, slot),
                      Pointwise(IsNear(bound), get(Layout::kRowMajor, slot)))
              << Name(x) << " " << Name(y) << " " << Name(out) << " " << slot;
        }
        EXPECT_THAT(
            get(Layout::kChannelsLast, "ScaleGrad"),
            Pointwise(IsNear(1e-5), get(Layout::kRowMajor, "ScaleGrad")));
      }
    }
  }
}

// Which thread adds what the shape alone decides.
TEST(RowNormLast, OfAnyNumberOfThreadsTheSame) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const auto& [dims, groups] : Shapes()) {
      const int64_t n = Product(dims);
      Values dy = Draws(n + 1);
      dy.resize(n);
      std::vector<std::string> first;
      for (const int threads : {1, 2, 7}) {
        KernelRun norm("group_norm");
        norm.In("X", Image(dtype, dims, Draws(n, -2, 4))).Threads(threads);
        norm.Attr("groups", groups);
        KernelRun grad("group_norm_grad");
        grad.In("X", Image(dtype, dims, Draws(n, -2, 4))).Threads(threads);
        grad.In("YGrad", Image(dtype, dims, dy)).Attr("groups", groups);
        const Dims rows = {dims[0], groups};
        grad.In("Mean", F32(rows, norm.Get("Mean")));
        grad.In("Variance", F32(rows, norm.Get("Variance")));
        const std::vector<std::string> bytes = {
            norm.Bytes("Y"), norm.Bytes("Variance"), grad.Bytes("XGrad")};
        if (first.empty()) first = bytes;
        EXPECT_EQ(bytes, first) << ::testing::PrintToString(dims);
      }
    }
  }
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
