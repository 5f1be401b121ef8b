// Batch normalisation against sums in double.
#include "kernels/functors/norm.h"

#include <cmath>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {
namespace kernels {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Pointwise;
using Dims = std::vector<int64_t>;
using Values = std::vector<double>;

Values Floats(Values values) {
  for (double& v : values) v = static_cast<float>(v);
  return values;
}

Tensor Image(DType dtype, Dims dims, Values values, bool channels_last) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.dims = std::move(dims);
  tensor.values = std::move(values);
  if (channels_last) tensor.layout = Layout::kChannelsLast;
  return tensor;
}

// What a batch norm of x is, in double.
struct Exact {
  Exact(const Dims& dims, const Values& x, const Values& dy,
        const Values& scale, const Values& bias, double epsilon) {
    const int64_t c = dims[1];
    int64_t inner = 1;
    for (size_t i = 2; i < dims.size(); ++i) inner *= dims[i];
    const int64_t count = c == 0 ? 0 : x.size() / c;
    const auto channel = [&](size_t i) { return i / inner % c; };
    mean = variance = scale_grad = bias_grad = Values(c);
    for (size_t i = 0; i < x.size(); ++i) mean[channel(i)] += x[i] / count;
    for (size_t i = 0; i < x.size(); ++i) {
      variance[channel(i)] += std::pow(x[i] - mean[channel(i)], 2) / count;
    }
    Values hat(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const int64_t k = channel(i);
      hat[i] = (x[i] - mean[k]) / std::sqrt(variance[k] + epsilon);
      y.push_back(hat[i] * scale[k] + bias[k]);
      scale_grad[k] += dy[i] * hat[i];
      bias_grad[k] += dy[i];
    }
    for (size_t i = 0; i < x.size(); ++i) {
      const int64_t k = channel(i);
      dx.push_back(
          scale[k] / std::sqrt(variance[k] + epsilon) *
          (dy[i] - bias_grad[k] / count - hat[i] * scale_grad[k] / count));
    }
  }
  Values mean, variance, y, dx, scale_grad, bias_grad;
};

// Within `bound` of the second, relative where that is above 1.
MATCHER_P(IsNear, bound, "") {
  const double found = std::get<0>(arg), exact = std::get<1>(arg);
  return std::abs(found - exact) <= bound * (1 + std::abs(exact));
}

class NormShapes
    : public ::testing::TestWithParam<std::tuple<Dims, bool, int>> {};
INSTANTIATE_TEST_SUITE_P(
    Shapes, NormShapes,
    ::testing::Combine(::testing::Values(Dims{64, 3}, Dims{3, 2000},
                                         Dims{4, 5, 7}, Dims{2, 3, 40, 40},
                                         Dims{700, 2, 1, 1}, Dims{3, 300, 2, 3},
                                         Dims{5, 16, 7, 7}),
                       ::testing::Bool(), ::testing::Values(1, 3)));

// 4e-6: 32 roundings of f32 at most, where 64 numbers are added in turn and a
// small variance is divided by.
TEST_P(NormShapes, WholeNormAndGradient) {
  const auto& [dims, channels_last, threads] = GetParam();
  if (channels_last && dims.size() != 4) GTEST_SKIP();
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  const int64_t c = dims[1];
  Values x = Floats(Draws(n, -2, 4)), dy = Floats(Draws(n + 1));
  dy.resize(n);
  const Values scale = Floats(Draws(c, 0.5, 2)), bias = Floats(Draws(c));
  const Exact exact(dims, x, dy, scale, bias, 1e-5);
  KernelRun norm("batch_norm");
  norm.In("X", Image(DType::kF32, dims, x, channels_last));
  norm.In("Scale", F32({c}, scale)).In("Bias", F32({c}, bias));
  norm.In("Mean", F32({c}, Values(c))).In("Variance", F32({c}, Values(c, 1)));
  norm.Threads(threads);
  EXPECT_THAT(norm.Get("Y"), Pointwise(IsNear(4e-6), exact.y));
  EXPECT_THAT(norm.Get("BatchMean"), Pointwise(IsNear(4e-6), exact.mean));
  EXPECT_THAT(norm.Get("BatchVariance"),
              Pointwise(IsNear(4e-6), exact.variance));
  EXPECT_EQ(norm.Value("BatchCount"), static_cast<double>(n / c));
  KernelRun grad("batch_norm_grad");
  grad.In("X", Image(DType::kF32, dims, x, channels_last));
  grad.In("YGrad", Image(DType::kF32, dims, dy, channels_last));
  grad.In("Scale", F32({c}, scale)).In("BatchMean", F32({c}, exact.mean));
  grad.In("BatchVariance", F32({c}, exact.variance)).Threads(threads);
  EXPECT_THAT(grad.Get("XGrad"), Pointwise(IsNear(4e-6), exact.dx));
  const double sums = 1e-6 * std::sqrt(n / c) + 1e-6;
  EXPECT_THAT(grad.Get("ScaleGrad"), Pointwise(IsNear(sums), exact.scale_grad));
  EXPECT_THAT(grad.Get("BiasGrad"), Pointwise(IsNear(sums), exact.bias_grad));
}

// Deviation 1 about a mean far from 0: sums of squares about 0, or about an old
// mean, would be noise. What is left is the rounding of the mean to f32, which
// all that follows is about.
TEST(BatchNormTest, FarFromZero) {
  for (double mean : {0.0, 1e3, 1e4, 1e5}) {
    const double ulp = mean * 6e-8;
    for (const Dims& dims : {Dims{4000, 1}, Dims{3, 2, 20, 20}, Dims{100, 7}}) {
      int64_t n = 1;
      for (int64_t d : dims) n *= d;
      const int64_t c = dims[1];
      const Values x = Floats(Draws(n, mean - 2, mean + 2));
      Values dy = Floats(Draws(n + 1));
      dy.resize(n);
      const Exact exact(dims, x, dy, Values(c, 1), Values(c), 1e-5);
      KernelRun run("batch_norm"), stats("channel_stats");
      run.In("X", F32(dims, x)).In("Scale", F32({c}, Values(c, 1)));
      run.In("Bias", F32({c}, Values(c))).In("Mean", F32({c}, Values(c)));
      run.In("Variance", F32({c}, Values(c, 1)));
      stats.In("X", F32(dims, x));
      for (const Values& v :
           {run.Get("BatchVariance"), stats.Get("Variance")}) {
        EXPECT_THAT(v, Pointwise(IsNear(1e-6), exact.variance)) << mean;
      }
      EXPECT_THAT(run.Get("BatchMean"), Pointwise(IsNear(1e-7), exact.mean));
      EXPECT_THAT(run.Get("Y"), Pointwise(IsNear(4e-6 + 2 * ulp), exact.y));
      KernelRun grad("batch_norm_grad");
      grad.In("X", F32(dims, x)).In("YGrad", F32(dims, dy));
      grad.In("Scale", F32({c}, Values(c, 1)));
      grad.In("BatchMean", F32({c}, run.Get("BatchMean")));
      grad.In("BatchVariance", F32({c}, run.Get("BatchVariance")));
      EXPECT_THAT(grad.Get("XGrad"),
                  Pointwise(IsNear(4e-6 + 2 * ulp), exact.dx));
      const double sums = 1e-6 * std::sqrt(n / c) * (1 + 1e6 * ulp) + 1e-6;
      EXPECT_THAT(grad.Get("ScaleGrad"),
                  Pointwise(IsNear(sums), exact.scale_grad));
    }
  }
}

// An outlier that comes first is what the sums of its chunk are about.
TEST(BatchNormTest, OutlierFirst) {
  for (const Dims& dims : {Dims{3000, 1}, Dims{1, 1, 3000}}) {
    const int64_t n = 3000;
    Values x = Floats(Draws(n));
    x[0] = 1e6;
    const Exact exact(dims, x, Values(n), {1}, {0}, 1e-5);
    KernelRun run("batch_norm");
    run.In("X", F32(dims, x)).In("Scale", F32({1}, {1}));
    run.In("Bias", F32({1}, {0})).In("Mean", F32({1}, {0}));
    run.In("Variance", F32({1}, {1}));
    EXPECT_NEAR(run.Value("BatchVariance") / exact.variance[0], 1, 1e-4);
  }
}

TEST(BatchNormTest, HalfIsComputedInF32) {
  // 1000 +- 8 in f16 (steps of 0.5): y is exact up to f16's rounding.
  const Values x = {992, 1008, 992, 1008};
  KernelRun run("batch_norm");
  run.In("X", F16({4, 1}, x)).In("Scale", F32({1}, {2}));
  run.In("Bias", F32({1}, {1})).In("Mean", F32({1}, {0}));
  run.In("Variance", F32({1}, {1})).Attr("epsilon", 0.0);
  EXPECT_THAT(run.Get("Y"), ElementsAre(-1, 3, -1, 3));
  EXPECT_EQ(run.Value("BatchMean"), 1000);
  EXPECT_EQ(run.Value("BatchVariance"), 64);
}

TEST(BatchNormTest, NothingHasMeanAndVarianceZero) {
  KernelRun run("batch_norm");
  run.In("X", F32({0, 2, 3, 3}, {})).In("Scale", F32({2}, {1, 1}));
  run.In("Bias", F32({2}, {0, 0})).In("Mean", F32({2}, {5, 5}));
  run.In("Variance", F32({2}, {1, 1}));
  EXPECT_THAT(run.Get("BatchMean"), Each(0));
  EXPECT_THAT(run.Get("BatchVariance"), Each(0));
  EXPECT_EQ(run.Value("BatchCount"), 0);
  KernelRun grad("batch_norm_grad");
  grad.In("X", F32({0, 2}, {})).In("YGrad", F32({0, 2}, {}));
  grad.In("Scale", F32({2}, {1, 1})).In("BatchMean", F32({2}, {0, 0}));
  grad.In("BatchVariance", F32({2}, {0, 0}));
  EXPECT_THAT(grad.Get("ScaleGrad"), Each(0));
  EXPECT_THAT(grad.Get("BiasGrad"), Each(0));
}

TEST(BatchNormTest, NaNsReachTheStatistics) {
  KernelRun run("batch_norm");
  run.In("X", F32({3, 2}, {1, 2, std::nan(""), 2, 1, INFINITY}));
  run.In("Scale", F32({2}, {1, 1})).In("Bias", F32({2}, {0, 0}));
  run.In("Mean", F32({2}, {0, 0})).In("Variance", F32({2}, {1, 1}));
  for (double v : run.Get("BatchVariance")) EXPECT_TRUE(std::isnan(v));
  EXPECT_TRUE(std::isnan(run.Get("BatchMean")[0]));
  EXPECT_FALSE(std::isfinite(run.Get("BatchMean")[1]));
}

TEST(BatchNormTest, BitsDoNotDependOnThreads) {
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    std::string bytes[2];
    for (int threads : {1, 4}) {
      KernelRun run("batch_norm");
      const Dims dims = {33, 40, 9, 11};
      run.In("X", Image(dtype, dims, Draws(33 * 40 * 99), true));
      run.In("Scale", F32({40}, Draws(40))).In("Bias", F32({40}, Draws(40)));
      run.In("Mean", F32({40}, Values(40)));
      run.In("Variance", F32({40}, Values(40, 1))).Threads(threads);
      bytes[threads / 4] = run.Bytes("Y") + run.Bytes("BatchVariance");
    }
    EXPECT_EQ(bytes[0], bytes[1]);
  }
}

// The split norm: stats, scale_bias; reduce, coefficients, apply.
TEST(BatchNormPartsTest, MakeTheWhole) {
  const Dims dims = {6, 4, 5, 5};
  const int64_t n = 600, c = 4;
  const Values x = Floats(Draws(n, 1, 4)), dy = Floats(Draws(n));
  const Values scale = {1, 2, 0.5, -1}, bias = {0, 1, 2, 3};
  const Exact exact(dims, x, dy, scale, bias, 1e-5);
  KernelRun stats("channel_stats");
  stats.In("X", F32(dims, x));
  const Tensor mean = F32({c}, stats.Get("Mean"));
  const Tensor variance = F32({c}, stats.Get("Variance"));
  EXPECT_THAT(mean.values, Pointwise(DoubleNear(1e-6), exact.mean));
  EXPECT_THAT(variance.values, Pointwise(DoubleNear(1e-6), exact.variance));
  KernelRun norm("scale_bias");
  norm.In("X", F32(dims, x)).In("Scale", F32({c}, scale));
  norm.In("Bias", F32({c}, bias)).In("Mean", mean).In("Variance", variance);
  EXPECT_THAT(norm.Get("Y"), Pointwise(DoubleNear(4e-6), exact.y));
  KernelRun reduce("bn_grad_reduce");
  reduce.In("X", F32(dims, x)).In("YGrad", F32(dims, dy));
  reduce.In("BatchMean", mean).In("BatchVariance", variance);
  const Tensor scale_grad = F32({c}, reduce.Get("ScaleGrad"));
  const Tensor bias_grad = F32({c}, reduce.Get("BiasGrad"));
  KernelRun coefficients("bn_grad_coefficients");
  coefficients.In("Scale", F32({c}, scale));
  coefficients.In("BatchVariance", variance).In("ScaleGradSum", scale_grad);
  coefficients.In("BiasGradSum", bias_grad).In("Count", Scalar(n / c));
  KernelRun apply("bn_grad_apply");
  apply.In("X", F32(dims, x)).In("YGrad", F32(dims, dy));
  apply.In("Mean", mean).In("A", F32({c}, coefficients.Get("A")));
  apply.In("B", F32({c}, coefficients.Get("B")));
  apply.In("C0", F32({c}, coefficients.Get("C0")));
  EXPECT_THAT(apply.Get("XGrad"), Pointwise(DoubleNear(4e-6), exact.dx));
}

// Of planes that are one tile, and of one that is two.
TEST(BatchNormPartsTest, PlanesOf16BitsAreSummedAsTheirFloatsAre) {
  for (const Dims& dims :
       {Dims{2, 3, 28, 28}, {2, 3, 27, 29}, {1, 2, 3, 500}}) {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    Values x = Draws(n), dy = Draws(n, 1);
    for (Values* values : {&x, &dy}) {
      for (double& v : *values) v = std::round(v * 16) / 16;
    }
    const int64_t c = dims[1];
    const auto sums = [&](DType dtype) {
      KernelRun stats("channel_stats");
      stats.In("X", Image(dtype, dims, x, false));
      KernelRun reduce("bn_grad_reduce");
      reduce.In("X", Image(dtype, dims, x, false));
      reduce.In("YGrad", Image(dtype, dims, dy, false));
      reduce.In("BatchMean", F32({c}, Values(c, 0.3)));
      reduce.In("BatchVariance", F32({c}, Values(c, 2)));
      return stats.Bytes("Mean") + stats.Bytes("Variance") +
             reduce.Bytes("ScaleGrad") + reduce.Bytes("BiasGrad");
    };
    EXPECT_EQ(sums(DType::kBF16), sums(DType::kF32));
    EXPECT_EQ(sums(DType::kF16), sums(DType::kF32));
  }
}

// The statistics of parts, each rank's in f32, make those of the whole.
TEST(BatchNormPartsTest, RanksCombine) {
  for (double mean : {0.0, 1e3, 1e4, 1e5}) {
    for (const std::vector<int64_t>& parts :
         {std::vector<int64_t>{300, 300}, {1, 599}, {0, 400, 0, 200}}) {
      const Values x = Floats(Draws(600, mean - 2, mean + 2));
      const Exact exact({600, 1}, x, Values(600), {1}, {0}, 1e-5);
      constexpr int kStride = 5;  // mean, variance, count and what is between
      std::vector<float> all;
      int64_t begin = 0;
      for (int64_t part : parts) {
        KernelRun stats("channel_stats");
        const Values own(x.begin() + begin, x.begin() + begin + part);
        stats.In("X", F32({part, 1}, own));
        for (const char* slot : {"Mean", "Variance", "Count"}) {
          all.push_back(static_cast<float>(stats.Value(slot)));
        }
        all.resize(all.size() + kStride - 3, NAN);
        begin += part;
      }
      const functors::RankStats ranks{&all[0], &all[1], &all[2], kStride,
                                      static_cast<int>(parts.size())};
      const functors::MeanVariance found = functors::CombineRanks(ranks, 0);
      EXPECT_EQ(functors::CombinedCount(ranks), 600);
      EXPECT_NEAR(found.mean, exact.mean[0], 1e-6 + mean * 6e-8);
      // The ranks' means differ by less than 1 and are off by half an ulp.
      EXPECT_NEAR(found.variance, exact.variance[0], 1e-6 + mean * 6e-8);
    }
  }
}

TEST(RunningStatsTest, InPlaceAndRejected) {
  for (bool rejected : {false, true}) {
    KernelRun run("running_stats");
    run.In("OldMean", F32({2}, {4, 0})).In("OldVariance", F32({2}, {1, 2}));
    run.In("BatchMean", F32({2}, {8, 4})).In("BatchVariance", F32({2}, {3, 6}));
    run.In("FoundInf", Scalar(rejected, DType::kBool)).Attr("momentum", 0.75);
    run.Alias("Mean", "OldMean").Alias("Variance", "OldVariance");
    EXPECT_EQ(run.Get("Mean"), rejected ? Values({4, 0}) : Values({5, 1}));
    EXPECT_EQ(run.Get("Variance"),
              rejected ? Values({1, 2}) : Values({1.5, 3}));
  }
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
