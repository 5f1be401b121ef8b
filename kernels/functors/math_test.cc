#include "kernels/functors/math.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"
#include "kernels/functors/accuracy.h"
#include "kernels/functors/elementwise.h"
#include "kernels/functors/pointwise_loss.h"

namespace halftone {
namespace functors {
namespace {

// The bounds are those of the header: measured over all bit patterns in steps
// of 97, rounded up.
TEST(MathTest, ExpIsAccurate) {
  EXPECT_LT(WorstUlps(
                Exp, [](double x) { return std::exp(x); }, -110, 100),
            1.0);
}
TEST(MathTest, LogIsAccurate) {
  EXPECT_LT(WorstUlps(
                Log, [](double x) { return std::log(x); }, 0, 3.4e38f),
            1.0);
}
TEST(MathTest, TanhIsAccurate) {
  EXPECT_LT(WorstUlps(
                Tanh, [](double x) { return std::tanh(x); }, -99, 99),
            1.4);
}
TEST(MathTest, SigmoidIsAccurate) {
  const auto exact = [](double x) { return 1 / (1 + std::exp(-x)); };
  EXPECT_LT(WorstUlps(Sigmoid, exact, -87, 99), 2.5);
}

TEST(MathTest, Expm1IsAccurate) {
  EXPECT_LT(WorstUlps(
                Expm1, [](double x) { return std::expm1(x); }, -1e30f, 88),
            1.5);
}
TEST(MathTest, Log1pIsAccurate) {
  EXPECT_LT(WorstUlps(
                Log1p, [](double x) { return std::log1p(x); }, 0, 1),
            2.0);
}

// Beside half a unit of f16, 2^-12 of a number.
TEST(MathTest, FormsOfSixteenBitsAreAccurate) {
  const auto exp = [](double x) { return std::exp(x); };
  EXPECT_LT(WorstUlps(LowExp, exp, -103, 100), 0x1p7);
  EXPECT_LT(WorstUlps(LowExpUpTo0, exp, -87, 0), 0x1p7);
  EXPECT_LT(WorstUlps([](float x) { return 1 - LowExpUpTo0(x); },
                      [](double x) { return -std::expm1(x); }, -0.5f, -0x1p-6f),
            0x1p9);
  EXPECT_LT(WorstUlps(
                LowExpm1, [](double x) { return std::expm1(x); }, -1e30f, 0),
            0x1p8);
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  EXPECT_LT(WorstUlps(LowSigmoid, sigmoid, -87, 99), 0x1p7);
  for (float x : {-105.0f, -1e30f, -Infinity()}) EXPECT_EQ(LowExp(x), 0);
  for (float x : {90.0f, 1e30f, Infinity()}) EXPECT_EQ(LowExp(x), Infinity());
  EXPECT_EQ(LowExpm1(-Infinity()), -1);
  EXPECT_EQ(LowSigmoid(-Infinity()), 0);
  EXPECT_EQ(LowSigmoid(Infinity()), 1);
  for (const auto f : {LowExp, LowExpm1, LowSigmoid}) {
    EXPECT_TRUE(std::isnan(f(QuietNaN())));
  }
}

TEST(MathTest, LossOfAShareOfSixteenBits) {
  const auto log = [](double x) { return std::log(x); };
  EXPECT_LT(WorstUlps(LowLogOfShare, log, 4e-44f, 0.99f), 0x1p8);
  EXPECT_LT(WorstUlps(LowLogOfShare, log, 0.99f, 1), 0x1p8);
  EXPECT_EQ(LowLogOfShare(0), -100);
  EXPECT_EQ(LowLogOfShare(1), 0);
  const BceOp whole;
  const BceOp::Low low;
  for (const float y : {0.0f, 0.25f, 1.0f}) {
    for (const float x : {0.0f, -0.0f, 1e-40f, 0.3f, 0.9f, 1.0f}) {
      EXPECT_NEAR(low(x, y), whole(x, y), 0x1p-15f * whole(x, y)) << x << y;
    }
    for (const float x : {-1e-9f, 1.001f, Infinity(), -Infinity()}) {
      EXPECT_TRUE(std::isnan(low(x, y)) && std::isnan(whole(x, y))) << x;
    }
    EXPECT_TRUE(std::isnan(low(QuietNaN(), y)));
    EXPECT_TRUE(std::isnan(low(y, QuietNaN())));
  }
}

TEST(MathTest, ExpOfSquareIsAccurate) {
  const auto bell = [](float x) {
    const SplitExp exp = ExpOfSquare(-0.5f, x);
    const float power = kUnlift * exp.power;
    return Fma(power, exp.rest, power);
  };
  EXPECT_LT(WorstUlps(
                bell, [](double x) { return std::exp(-x * x / 2); }, -16, 16),
            1.3);
}

TEST(MathTest, ShortcutsOfExpHaveItsBits) {
  for (uint32_t bits = 0; bits <= 0x7f800000u - 997; bits += 997) {
    const float x = FromBits(bits);
    ASSERT_EQ(Bits(ExpUpTo40(-x)), Bits(Exp(-x))) << x;
    if (x <= 40) {
      ASSERT_EQ(Bits(ExpUpTo40(x)), Bits(Exp(x))) << x;
    }
    if (x > 87) continue;
    ASSERT_EQ(Bits(NearExp(x)), Bits(Exp(x))) << x;
    ASSERT_EQ(Bits(NearExp(-x)), Bits(Exp(-x))) << x;
  }
  for (float x = -87; x <= 0; x += 0x1p-14f) {
    ASSERT_EQ(Bits(ExpUpTo0(x)), Bits(Exp(x))) << x;
  }
  for (const auto f : {ExpUpTo0, LowExpUpTo0}) {
    for (float x : {-87.5f, -1e30f, -Infinity()}) EXPECT_EQ(f(x), 0);
    EXPECT_EQ(f(0), 1);
    EXPECT_TRUE(std::isnan(f(QuietNaN())));
  }
  EXPECT_EQ(ExpUpTo40(-Infinity()), 0);
  for (uint32_t bits : {0x7fc00000u, 0x7fc00001u, 0xffc12345u}) {
    EXPECT_TRUE(std::isnan(ExpUpTo40(FromBits(bits))));
    EXPECT_TRUE(std::isnan(Exp(FromBits(bits))));
    EXPECT_TRUE(std::isnan(Tanh(FromBits(bits))));
  }
}

TEST(MathTest, SpecialValues) {
  const float inf = Infinity(), nan = QuietNaN();
  EXPECT_EQ(Exp(inf), inf);
  EXPECT_EQ(Exp(-inf), 0);
  EXPECT_EQ(Exp(0), 1);
  EXPECT_TRUE(std::isnan(Exp(nan)));
  EXPECT_EQ(Log(0), -inf);
  EXPECT_EQ(Log(-0.0f), -inf);
  EXPECT_EQ(Log(inf), inf);
  EXPECT_EQ(Log(1), 0);
  EXPECT_TRUE(std::isnan(Log(-1)));
  EXPECT_TRUE(std::isnan(Log(-inf)));
  EXPECT_TRUE(std::isnan(Log(nan)));
  EXPECT_EQ(Tanh(inf), 1);
  EXPECT_EQ(Tanh(-inf), -1);
  EXPECT_TRUE(std::isnan(Tanh(nan)));
  EXPECT_EQ(Sigmoid(-inf), 0);
  EXPECT_EQ(Sigmoid(inf), 1);
  EXPECT_TRUE(std::isnan(Sigmoid(nan)));
  EXPECT_EQ(Expm1(-inf), -1);
  EXPECT_TRUE(std::isnan(Expm1(nan)));
  EXPECT_TRUE(std::isnan(Log1p(nan)));
  EXPECT_FALSE(IsFinite(nan));
  EXPECT_FALSE(IsFinite(-inf));
  EXPECT_TRUE(IsFinite(std::numeric_limits<float>::max()));
}

TEST(MathTest, NearFormsHaveTheSameBits) {
  for (uint32_t bits = 0; bits <= Bits(87.0f); bits += 10007) {
    for (const float x : {FromBits(bits), -FromBits(bits), 87.0f, -87.0f}) {
      ASSERT_TRUE(ExpOp::IsNear(x) && SigmoidOp::IsNear(x));
      ASSERT_EQ(Bits(ExpOp()(x)), Bits(ExpOp::Near(x))) << x;
      ASSERT_EQ(Bits(SigmoidOp()(x)), Bits(SigmoidOp::Near(x))) << x;
    }
  }
  for (uint32_t bits = Bits(1.17549435e-38f); bits < Bits(Infinity());
       bits += 10007) {
    ASSERT_EQ(Bits(Log(FromBits(bits))), Bits(NearLog(FromBits(bits))));
  }
  for (const float x : {88.0f, -88.0f, Infinity(), QuietNaN()}) {
    EXPECT_FALSE(ExpOp::IsNear(x) || SigmoidOp::IsNear(x));
  }
}

}  // namespace
}  // namespace functors
}  // namespace halftone
