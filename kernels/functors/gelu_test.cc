#include "kernels/functors/gelu.h"

#include <cmath>

#include "gtest/gtest.h"

namespace halftone {
namespace functors {
namespace {

double Cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double ByTanh(double x) {
  return 0.5 *
         (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

TEST(GeluTest, NormalCdfIsAccurate) {
  for (double at = -8; at <= 8; at += 1.0 / 512) {
    const float x = static_cast<float>(at);
    EXPECT_NEAR(NormalCdf(x), Cdf(x), 1.1e-7) << x;
    EXPECT_NEAR(NormalCdf(x) / Cdf(x), 1, 5e-6) << x;
  }
}

TEST(GeluTest, Values) {
  for (double at = -8; at <= 8; at += 1.0 / 512) {
    const float x = static_cast<float>(at);
    const double error = 2e-7 * (1 + std::fabs(at));
    EXPECT_NEAR(GeluOp{false}(x), x * Cdf(x), error);
    EXPECT_NEAR(GeluOp{true}(x), x * ByTanh(x), error);
  }
}

// Against central differences in f64, whose own error is 1e-9. A rounding of
// tanh, 6e-8, is multiplied by x / 2 and by the slope within: 9 at most.
TEST(GeluTest, Gradients) {
  constexpr double kStep = 1e-4;
  const auto slope = [](double (*cdf)(double), double x) {
    return ((x + kStep) * cdf(x + kStep) - (x - kStep) * cdf(x - kStep)) /
           (2 * kStep);
  };
  for (double at = -8; at <= 8; at += 1.0 / 128) {
    const float x = static_cast<float>(at);
    EXPECT_NEAR(GeluGradOp{false}(x, 2), 2 * slope(Cdf, at), 1.5e-6) << x;
    EXPECT_NEAR(GeluGradOp{true}(x, 2), 2 * slope(ByTanh, at), 1.5e-6) << x;
  }
}

TEST(GeluTest, FarOut) {
  for (bool tanh : {false, true}) {
    const GeluOp gelu{tanh};
    const GeluGradOp grad{tanh};
    for (float x : {20.0f, 1e20f, 3e38f, Infinity()}) {
      EXPECT_EQ(gelu(x), x);
      EXPECT_EQ(grad(x, 3), 3);
      EXPECT_EQ(grad(-x, 3), 0);
    }
    EXPECT_EQ(gelu(-20.0f), 0);
    EXPECT_EQ(gelu(-3e38f), 0);
    EXPECT_EQ(gelu(0.0f), 0);
    EXPECT_TRUE(std::isnan(gelu(QuietNaN())));
    EXPECT_TRUE(std::isnan(grad(QuietNaN(), 1)));
  }
}

}  // namespace
}  // namespace functors
}  // namespace halftone
