#include "kernels/functors/activation.h"

#include <cmath>

#include "gtest/gtest.h"
#include "kernels/functors/accuracy.h"

namespace halftone {
namespace functors {
namespace {

// OutGrad = 1.
template <typename F>
auto SlopeOf(F f) {
  return [f](float x) { return f(x, 1.0f); };
}

double ExactSoftplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }
double ExactSigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Bounds: measured over all bit patterns in steps of 97, rounded up.
TEST(ActivationTest, ErfIsAccurate) {
  EXPECT_LT(WorstUlps(
                ErfOp(), [](double x) { return std::erf(x); }, -9e37f, 9e37f),
            1.5);
  const auto slope = [](double x) {
    return 2 / std::sqrt(M_PI) * std::exp(-x * x);
  };
  EXPECT_LT(WorstUlps(SlopeOf(ErfGradOp()), slope, -20, 20), 2.5);
}

TEST(ActivationTest, SoftplusIsAccurate) {
  EXPECT_LT(WorstUlps(SoftplusOp{1, 20}, ExactSoftplus, -87, 99), 3.0);
  EXPECT_LT(WorstUlps(SlopeOf(SoftplusGradOp{1, 20}), ExactSigmoid, -87, 99),
            2.5);
}

TEST(ActivationTest, MishIsAccurate) {
  const auto exact = [](double x) { return x * std::tanh(ExactSoftplus(x)); };
  EXPECT_LT(WorstUlps(MishOp{20}, exact, -87, 99), 4.0);
  // The slope is 0 near -1.19: there it is accurate beside 1.
  const auto slope = [](double x) {
    const double t = std::tanh(ExactSoftplus(x));
    return t + x * (1 - t * t) * ExactSigmoid(x);
  };
  EXPECT_LT(WorstUlps(SlopeOf(MishGradOp{20}), slope, -80, 99, 4e-7), 1.0);
}

TEST(ActivationTest, SwishIsAccurate) {
  const auto exact = [](double x) { return x * ExactSigmoid(x); };
  EXPECT_LT(WorstUlps(SwishOp{1}, exact, -87, 99), 3.0);
  // The slope is 0 near -1.28.
  const auto slope = [](double x) {
    const double s = ExactSigmoid(x);
    return s * (1 + x * (1 - s));
  };
  EXPECT_LT(WorstUlps(SlopeOf(SwishGradOp{1}), slope, -80, 99, 4e-7), 1.0);
}

TEST(ActivationTest, EluIsAccurate) {
  const auto exact = [](double x) { return x > 0 ? x : std::expm1(x); };
  EXPECT_LT(WorstUlps(EluOp{1}, exact, -1e30f, 99), 1.5);
  const auto slope = [](double x) { return x > 0 ? 1 : std::exp(x); };
  EXPECT_LT(WorstUlps(SlopeOf(EluGradOp{1}), slope, -110, 99), 1.0);
}

// Units of f32, of which one of f16 has 2^13. The slopes of swish are 0 near
// -1.28.
TEST(ActivationTest, FormsOfSixteenBitsAreAccurate) {
  const auto swish = [](double x) { return x * ExactSigmoid(x); };
  EXPECT_LT(WorstUlps(SwishOp::Low{1}, swish, -87, 99), 0x1p7);
  const auto swish_slope = [](double x) {
    const double s = ExactSigmoid(x);
    return s * (1 + x * (1 - s));
  };
  EXPECT_LT(WorstUlps(SlopeOf(SwishGradOp::Low{1}), swish_slope, -80, 99, 2e-6),
            0x1p8);
  const auto elu = [](double x) { return x > 0 ? x : std::expm1(x); };
  EXPECT_LT(WorstUlps(EluOp::Low{1}, elu, -1e30f, 99), 0x1p8);
  const auto elu_slope = [](double x) { return x > 0 ? 1 : std::exp(x); };
  EXPECT_LT(WorstUlps(SlopeOf(EluGradOp::Low{1}), elu_slope, -103, 99), 0x1p7);
  EXPECT_LT(
      WorstUlps(SlopeOf(SoftplusGradOp::Low{1, 20}), ExactSigmoid, -87, 99),
      0x1p7);
  const auto bell = [](double x) {
    return 2 / std::sqrt(M_PI) * std::exp(-x * x);
  };
  EXPECT_LT(WorstUlps(SlopeOf(ErfGradOp::Low()), bell, -5, 5), 0x1p8);
  EXPECT_LT(WorstUlps(SlopeOf(ErfGradOp::Low()), bell, -9, 9), 0x1p10);
}

TEST(ActivationTest, FormsOfSixteenBitsKeepNaNsAndInfinities) {
  const float nan = QuietNaN(), inf = Infinity();
  EXPECT_TRUE(std::isnan(SwishOp::Low{1}(nan)));
  EXPECT_TRUE(std::isnan(SwishGradOp::Low{1}(nan, 1)));
  EXPECT_TRUE(std::isnan(EluOp::Low{1}(nan)));
  EXPECT_TRUE(std::isnan(EluGradOp::Low{1}(nan, 1)));
  EXPECT_TRUE(std::isnan((SoftplusGradOp::Low{1, 20}(nan, 1))));
  EXPECT_TRUE(std::isnan(ErfGradOp::Low()(nan, 1)));
  EXPECT_EQ(EluOp::Low{2}(-inf), -2);
  EXPECT_EQ(EluOp::Low{2}(inf), inf);
  EXPECT_EQ(EluGradOp::Low{2}(-inf, 3), 0);
  EXPECT_EQ(EluGradOp::Low{2}(inf, 3), 3);
  EXPECT_EQ(SwishOp::Low{1}(inf), inf);
  EXPECT_EQ(SwishOp::Low{1}(-3e38f), 0);
  EXPECT_EQ(SwishGradOp::Low{1}(3e38f, 3), 3);
  EXPECT_EQ(SwishGradOp::Low{1}(-3e38f, 3), 0);
  EXPECT_EQ((SoftplusGradOp::Low{1, 20}(-inf, 3)), 0);
  EXPECT_EQ((SoftplusGradOp::Low{2, 3}(1.6f, 3)), 3);
  EXPECT_EQ(ErfGradOp::Low()(inf, 3), 0);
  EXPECT_EQ(ErfGradOp::Low()(-3e38f, 3), 0);
}

// A threshold other than the default, where both branches differ.
TEST(ActivationTest, ThresholdsChooseTheBranch) {
  EXPECT_EQ((SoftplusOp{2, 3}(1.6f)), 1.6f);
  EXPECT_NEAR((SoftplusOp{2, 3}(1.5f)), std::log1p(std::exp(3.0)) / 2, 2e-7);
  EXPECT_NEAR(MishOp{2}(2.5f), 2.5 * std::tanh(2.5), 3e-7);
  EXPECT_NEAR(MishOp{2}(2.0f), 2 * std::tanh(std::log1p(std::exp(2.0))), 3e-7);
  const double t = std::tanh(2.5);
  EXPECT_NEAR(MishGradOp{2}(2.5f, 1), t + 2.5 * (1 - t * t), 3e-7);
}

TEST(ActivationTest, NaNsStay) {
  const float nan = QuietNaN();
  EXPECT_TRUE(std::isnan(LeakyReluOp{0.5f}(nan)));
  EXPECT_TRUE(std::isnan(EluOp{1}(nan)));
  EXPECT_TRUE(std::isnan(SwishOp{1}(nan)));
  EXPECT_TRUE(std::isnan((HardSwishOp{6, 6, 3}(nan))));
  EXPECT_TRUE(std::isnan((HardSigmoidOp{0.2f, 0.5f}(nan))));
  EXPECT_TRUE(std::isnan((SoftplusOp{1, 20}(nan))));
  EXPECT_TRUE(std::isnan(MishOp{20}(nan)));
  EXPECT_TRUE(std::isnan(ErfOp()(nan)));
}

}  // namespace
}  // namespace functors
}  // namespace halftone
