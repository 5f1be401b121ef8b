#include "kernels/functors/cast.h"

#include <limits>

#include "gtest/gtest.h"

namespace halftone {
namespace functors {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(CastTest, FloatsToIntegersTruncateAndSaturate) {
  EXPECT_EQ(Cast<int32_t>(2.9f), 2);
  EXPECT_EQ(Cast<int32_t>(-2.9f), -2);
  EXPECT_EQ(Cast<int32_t>(kInf), std::numeric_limits<int32_t>::max());
  EXPECT_EQ(Cast<int32_t>(-1e20f), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(Cast<int64_t>(1e30), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Cast<int64_t>(half(-3.5f)), -3);
  EXPECT_EQ(Cast<uint8_t>(-1.0f), 0);
  EXPECT_EQ(Cast<uint8_t>(255.9f), 255);
  EXPECT_EQ(Cast<uint8_t>(300.0f), 255);
  EXPECT_EQ(Cast<int32_t>(kNaN), 0);
}

TEST(CastTest, BoolIsNotZero) {
  EXPECT_TRUE(Cast<bool>(half(0.5f)));
  EXPECT_TRUE(Cast<bool>(kNaN));
  EXPECT_FALSE(Cast<bool>(-0.0f));
  EXPECT_TRUE(Cast<bool>(int64_t{256}));
  EXPECT_EQ(Cast<float>(true), 1.0f);
}

TEST(CastTest, FloatsRoundToNearestEven) {
  EXPECT_EQ(Cast<half>(1.0f + 0x1p-11f).bits, half(1.0f).bits);
  EXPECT_EQ(Cast<bfloat16>(1.0f + 0x1.8p-7f).bits,
            bfloat16(1.0f + 0x1p-6f).bits);
  EXPECT_EQ(Cast<float>(int64_t{16777217}), 16777216.0f);
  EXPECT_EQ(Cast<double>(half(0.5f)), 0.5);
}

}  // namespace
}  // namespace functors
}  // namespace halftone
