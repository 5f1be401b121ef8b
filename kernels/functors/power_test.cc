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

// Results of f16 are some 2^-12 from exact by their rounding alone.
TEST(PowerTest, LowFormIsAccurateForOperandsOf16Bits) {
  for (float y : {2.5f, -3.0f, 0.333251953125f, 8.0f, -7.25f, 1.0f}) {
    const auto power = [y](float x) { return PowerOp::Low()(x, y); };
    for (uint32_t bits = 0x0400; bits < 0x7c00; ++bits) {
      half x;
      x.bits = static_cast<uint16_t>(bits);
      const float base = static_cast<float>(x);
      const double exact = std::pow(static_cast<double>(base), y);
      const double log = std::fabs(std::log2(exact));
      if (log > 149) continue;
      EXPECT_NEAR(power(base), exact,
                  std::fmax(log, 1) * exact * 0x1p-21 + 0x1p-149)
          << base << " " << y;
    }
  }
}

TEST(PowerTest, NearFormsHaveTheSameBits) {
  for (uint32_t x_bits = 1; x_bits < 0xff800000u; x_bits += 1300003) {
    for (uint32_t y_bits = 1; y_bits < 0xff800000u; y_bits += 1700021) {
      const float x = FromBits(x_bits), y = FromBits(y_bits);
      if (!PowerOp::IsNear(x, y)) continue;
      ASSERT_EQ(Bits(PowerOp::Near(x, y)), Bits(PowerOp()(x, y)));
      ASSERT_EQ(Bits(PowerOp::Low::Near(x, y)), Bits(PowerOp::Low()(x, y)));
    }
  }
  EXPECT_EQ(PowerOp::Low::Near(2.0f, 0.5f), PowerOp::Low()(2.0f, 0.5f));
  for (float y : {Infinity(), -Infinity(), QuietNaN(), 1e30f}) {
    for (float x : {1.0f, 2.0f}) {
      EXPECT_EQ(PowerOp::IsNear(x, y), x == 1.0f && y == 1e30f);
    }
  }
  for (float x : {0.0f, 1e-40f, Infinity(), QuietNaN(), -1.0f, -0.0f}) {
    EXPECT_FALSE(PowerOp::IsNear(x, 0.5f));
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
      for (float found : {Pow(x, y), PowerOp::Low()(x, y)}) {
        if (std::isnan(expected)) {
          EXPECT_TRUE(std::isnan(found)) << x << " " << y;
          continue;
        }
        EXPECT_FLOAT_EQ(found, expected) << x << " " << y;
        EXPECT_EQ(std::signbit(found), std::signbit(expected)) << x << " " << y;
      }
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
