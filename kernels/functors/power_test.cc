#include "kernels/functors/power.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "kernels/functors/accuracy.h"

namespace halftone {
namespace functors {
namespace {

TEST(PowerTest, IsAccurateForAllBases) {
  for (float y : {2.5f, -3.0f, 1.0f / 3, 100.0f, -7.25f, 1.0f, 1e-3f}) {
    const auto exact = [y](double x) {
      return std::pow(x, static_cast<double>(y));
    };
    EXPECT_LT(WorstUlps(PowOp{y}, exact, 0, 3.4e38f, 0, 10007), 0.51) << y;
  }
  for (float y : {3.0f, 4.0f, -1.0f}) {
    const auto exact = [y](double x) {
      return std::pow(x, static_cast<double>(y));
    };
    EXPECT_LT(WorstUlps(PowOp{y}, exact, -3.4e38f, 0, 0, 10007), 0.51) << y;
  }
}

TEST(PowerTest, IsAccurateForAllExponents) {
  for (float x : {0.5f, 0.999f, 1.001f, 3.0f, 1e30f, 1e-40f}) {
    const auto power = [x](float y) { return Pow(x, y); };
    const auto exact = [x](double y) {
      return std::pow(static_cast<double>(x), y);
    };
    EXPECT_LT(WorstUlps(power, exact, -1e30f, 1e30f, 0, 10007), 0.51) << x;
  }
}

// Zeros, infinities, NaNs, whole and odd exponents: C's table.
TEST(PowerTest, EdgesAreThoseOfC) {
  const float inf = Infinity();
  const float edges[] = {0.0f,  -0.0f,  1.0f,   -1.0f, 2.0f,  -2.0f,
                         0.5f,  -0.5f,  3.0f,   -3.0f, inf,   -inf,
                         1e30f, -1e30f, 1e-40f, 2.5f,  -2.5f, QuietNaN()};
  for (float x : edges) {
    for (float y : edges) {
      const float expected = static_cast<float>(
          std::pow(static_cast<double>(x), static_cast<double>(y)));
      const float found = Pow(x, y);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(found)) << x << " " << y;
        continue;
      }
      EXPECT_EQ(found, expected) << x << " " << y;
      EXPECT_EQ(std::signbit(found), std::signbit(expected)) << x << " " << y;
    }
  }
}

TEST(PowerTest, SlopesAreZeroWhereTheFormulaHasNone) {
  EXPECT_EQ(PowerByXOp()(3, 2), 6);
  EXPECT_EQ(PowerByXOp()(0, 0), 0);
  EXPECT_EQ(PowerByXOp()(0, 1), 1);
  EXPECT_EQ(PowerByYOp()(0, 2), 0);
  EXPECT_EQ(PowerByYOp()(0, 0), 0);
  EXPECT_NEAR(PowerByYOp()(2, 3), 8 * std::log(2.0), 1e-6);
  EXPECT_TRUE(std::isnan(PowerByYOp()(-2, 2)));
}

}  // namespace
}  // namespace functors
}  // namespace halftone
