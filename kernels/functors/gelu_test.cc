#include "kernels/functors/gelu.h"

#include <cmath>
#include <cstdint>

#include "gtest/gtest.h"

namespace halftone {
namespace functors {
namespace {

// In f64, without sums that cancel in the lower tail.
double Exact(double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double ExactSlope(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0)) +
         x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
}
const double kRoot = std::sqrt(8 / M_PI);
double Sigmoid(double v) {
  return v < 0 ? std::exp(v) / (1 + std::exp(v)) : 1 / (1 + std::exp(-v));
}
double ByTanh(double x) {
  return x * Sigmoid(kRoot * (x + 0.044715 * x * x * x));
}
double ByTanhSlope(double x) {
  const double v = kRoot * (x + 0.044715 * x * x * x);
  const double slope = kRoot * (1 + 3 * 0.044715 * x * x);
  return Sigmoid(v) * (1 + x * Sigmoid(-v) * slope);
}

// The distance in units of the f32 number's last place.
double Units(float found, double exact) {
  const float at = std::fabs(static_cast<float>(exact));
  const double unit =
      static_cast<double>(std::nextafter(at, 1e30f)) - static_cast<double>(at);
  return std::fabs(static_cast<double>(found) - exact) / unit;
}

// Every 10,007th number from -30 to 30 with a magnitude above 2^-40.
template <typename Body>
void ForEachNumber(const Body& body) {
  for (uint32_t bits = 0x2b800000u; bits < 0x41f00000u; bits += 10007) {
    body(FromBits(bits));
    body(-FromBits(bits));
  }
}

TEST(GeluTest, ValuesAreAccurateEverywhere) {
  ForEachNumber([](float x) {
    ASSERT_LE(Units(GeluOp()(x), Exact(x)), x > 0 ? 3.7 : 4.5) << x;
    ASSERT_LE(Units(TanhGeluOp()(x), ByTanh(x)), x > 0 ? 2.7 : 2.9) << x;
  });
}

// Half a unit of f16 is at least 2^-12 of a number, of bf16 2^-9.
TEST(GeluTest, ValuesOfSixteenBitsAreAccurateEverywhere) {
  ForEachNumber([](float x) {
    const double exact = Exact(x), found = GeluOp::Low()(x);
    const double most = x < -6 ? 0x1p-14 : 0x1p-16;
    ASSERT_NEAR(found, exact, most * std::fabs(exact) + 0x1p-149) << x;
  });
  for (float x : {20.0f, 3e38f, Infinity()}) EXPECT_EQ(GeluOp::Low()(x), x);
  EXPECT_EQ(GeluOp::Low()(-3e38f), 0);
  EXPECT_TRUE(std::isnan(GeluOp::Low()(-Infinity())));
  EXPECT_TRUE(std::isnan(GeluOp::Low()(QuietNaN())));
}

TEST(GeluTest, GradientsAreAccurateEverywhere) {
  ForEachNumber([](float x) {
    ASSERT_LE(Units(GeluGradOp()(x, 1), ExactSlope(x)), 3.5) << x;
    const double slope = ByTanhSlope(x);
    const double found = static_cast<double>(TanhGeluGradOp()(x, 1));
    // Between these the sum of two terms is smaller than both.
    if (x > -2.0f && x < -0.4f) {
      ASSERT_NEAR(found, slope, 2e-7) << x;
    } else {
      ASSERT_LE(Units(TanhGeluGradOp()(x, 1), slope), 8) << x;
    }
    ASSERT_NEAR(static_cast<double>(TanhGeluGradOp()(x, -3)), -3 * slope, 1e-6);
  });
}

TEST(GeluTest, FarOut) {
  const auto check = [](auto gelu, auto grad) {
    for (float x : {20.0f, 1e20f, 3e38f, Infinity()}) {
      EXPECT_EQ(gelu(x), x);
      EXPECT_EQ(grad(x, 3), 3);
      EXPECT_EQ(grad(-x, 3), 0);
    }
    EXPECT_EQ(gelu(-20.0f), 0);
    EXPECT_EQ(gelu(-3e38f), 0);
    EXPECT_EQ(gelu(0.0f), 0);
    EXPECT_TRUE(std::isnan(gelu(-Infinity())));
    EXPECT_TRUE(std::isnan(gelu(QuietNaN())));
    EXPECT_TRUE(std::isnan(grad(QuietNaN(), 1)));
  };
  check(GeluOp(), GeluGradOp());
  check(TanhGeluOp(), TanhGeluGradOp());
}

}  // namespace
}  // namespace functors
}  // namespace halftone
