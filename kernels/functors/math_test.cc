#include "kernels/functors/math.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace halftone {
namespace functors {
namespace {

// Largest error in units of the last place over floats in [low, high], each
// 1009th bit pattern; where both are infinite or zero there is none.
template <typename F, typename Exact>
double WorstUlps(F f, Exact exact, float low, float high) {
  double worst = 0;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 1009) {
    const float x = FromBits(static_cast<uint32_t>(bits));
    if (!(x >= low && x <= high)) continue;
    const double expected = exact(static_cast<double>(x));
    const float rounded = static_cast<float>(expected);
    const float found = f(x);
    if (found == rounded) continue;
    if (!IsFinite(rounded) || !IsFinite(found)) return 1e9;
    const double ulp =
        std::max(0x1p-149, std::ldexp(1.0, std::ilogb(rounded) - 23));
    worst = std::max(worst, std::fabs(found - expected) / ulp);
  }
  return worst;
}

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
  EXPECT_FALSE(IsFinite(nan));
  EXPECT_FALSE(IsFinite(-inf));
  EXPECT_TRUE(IsFinite(std::numeric_limits<float>::max()));
}

}  // namespace
}  // namespace functors
}  // namespace halftone
