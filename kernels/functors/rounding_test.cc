#include "kernels/functors/rounding.h"

#include <cmath>
#include <cstdint>

#include "gtest/gtest.h"

namespace halftone {
namespace functors {
namespace {

// Also the sign of a zero.
TEST(RoundingTest, IsExactEverywhere) {
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 499) {
    const float x = FromBits(static_cast<uint32_t>(bits));
    if (std::isnan(x)) continue;
    ASSERT_EQ(Bits(FloorOp()(x)), Bits(std::floor(x))) << x;
    ASSERT_EQ(Bits(CeilOp()(x)), Bits(std::ceil(x))) << x;
    ASSERT_EQ(Bits(RoundOp()(x)), Bits(std::round(x))) << x;
    ASSERT_EQ(Bits(RoundEven(x)), Bits(std::nearbyint(x))) << x;
  }
}

TEST(RoundingTest, HalvesAndTheirNeighbours) {
  for (float whole = -9; whole < 9; ++whole) {
    for (float to : {-1e9f, 1e9f}) {
      const float half = whole + 0.5f, beside = std::nextafter(half, to);
      for (float x : {whole, half, beside}) {
        ASSERT_EQ(Bits(FloorOp()(x)), Bits(std::floor(x))) << x;
        ASSERT_EQ(Bits(CeilOp()(x)), Bits(std::ceil(x))) << x;
        ASSERT_EQ(Bits(RoundOp()(x)), Bits(std::round(x))) << x;
        ASSERT_EQ(Bits(RoundEven(x)), Bits(std::nearbyint(x))) << x;
      }
    }
  }
  EXPECT_EQ(Bits(CeilOp()(-0.5f)), Bits(-0.0f));
  EXPECT_EQ(Bits(RoundOp()(0.49999997f)), Bits(0.0f));
  EXPECT_TRUE(std::isnan(RoundOp()(QuietNaN())));
}

}  // namespace
}  // namespace functors
}  // namespace halftone
