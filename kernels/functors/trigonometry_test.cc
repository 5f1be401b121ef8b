#include "kernels/functors/trigonometry.h"

#include <cmath>

#include "gtest/gtest.h"
#include "kernels/functors/accuracy.h"

namespace halftone {
namespace functors {
namespace {

const float kLargest = 3.4e38f;

double Sine(double x) { return std::sin(x); }
double Cosine(double x) { return std::cos(x); }
double Arctangent(double x) { return std::atan(x); }

TEST(TrigonometryTest, AreAccurateEverywhere) {
  EXPECT_LT(WorstUlps(SinOp(), Sine, -kLargest, kLargest), 1.6);
  EXPECT_LT(WorstUlps(CosOp(), Cosine, -kLargest, kLargest), 1.6);
  EXPECT_LT(WorstUlps(AtanOp(), Arctangent, -kLargest, kLargest), 2.2);
}

// Multiples of pi / 2 are where both reductions lose digits: the f32 numbers
// beside them.
TEST(TrigonometryTest, AreAccurateBesideTheirZeros) {
  for (double k = 1; k < 1e30; k = std::floor(k * 1.5) + 1) {
    const float x = static_cast<float>(k * 3.14159265358979323846);
    for (float at : {x, std::nextafter(x, 0.0f), std::nextafter(x, kLargest)}) {
      const double exact = std::sin(static_cast<double>(at));
      const double found = static_cast<double>(SinOp()(at));
      ASSERT_LE(std::fabs(found - exact), std::fabs(exact) * 0x1.ap-23) << at;
    }
  }
}

// The two reductions are chosen by element: a loop over near ones alone gives
// the same bits.
TEST(TrigonometryTest, NearFormIsTheSame) {
  for (float x : {-524287.0f, -3.0f, -0.0f, 0.0f, 1e-40f, 0.5f, 100.0f}) {
    ASSERT_TRUE(SinOp::IsNear(x));
    EXPECT_EQ(Bits(SinOp()(x)), Bits(SinOp::Near(x))) << x;
    EXPECT_EQ(Bits(CosOp()(x)), Bits(CosOp::Near(x))) << x;
  }
  EXPECT_FALSE(SinOp::IsNear(524288.0f));
  EXPECT_FALSE(SinOp::IsNear(-Infinity()));
  EXPECT_FALSE(SinOp::IsNear(QuietNaN()));
}

TEST(TrigonometryTest, SpecialValues) {
  EXPECT_TRUE(std::signbit(SinOp()(-0.0f)));
  EXPECT_EQ(CosOp()(-0.0f), 1);
  for (float x : {Infinity(), -Infinity(), QuietNaN()}) {
    EXPECT_TRUE(std::isnan(SinOp()(x)));
    EXPECT_TRUE(std::isnan(CosOp()(x)));
  }
  EXPECT_TRUE(std::signbit(AtanOp()(-0.0f)));
  EXPECT_TRUE(std::isnan(AtanOp()(QuietNaN())));
  EXPECT_EQ(AtanOp()(Infinity()), 1.57079637f);
  EXPECT_EQ(AtanOp()(-Infinity()), -1.57079637f);
}

}  // namespace
}  // namespace functors
}  // namespace halftone
