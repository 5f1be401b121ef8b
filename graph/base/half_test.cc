#include "graph/base/half.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace halftone {
namespace {

using half_internal::Bits;
using half_internal::FromBits;

// A value of a binary format with `digits` significant bits, the smallest
// subnormal 2^lowest and the largest finite value `max`, nearest to `value`
// with ties to even. Exact in double: dividing by a power of two and rint.
double RoundTo(double value, int digits, int lowest, double max) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const double quantum = std::ldexp(1.0, std::max(exponent - digits, lowest));
  const double rounded = std::rint(value / quantum) * quantum;
  if (std::fabs(rounded) > max) {
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  return rounded;
}

// The largest finite values: (2 - 2^-10) 2^15 and (2 - 2^-7) 2^127.
double ToHalf(double v) { return RoundTo(v, 11, -24, 65504.0); }
double ToBFloat16(double v) { return RoundTo(v, 8, -133, 0x1.fep127); }

template <typename T>
bool SameAs(T rounded, double expected) {
  const float f = static_cast<float>(rounded);
  return static_cast<double>(f) == expected &&
         std::signbit(f) == std::signbit(expected);
}

template <typename T>
T FromStored(uint16_t bits) {
  T value;
  value.bits = bits;
  return value;
}

template <typename T>
void ExpectAllRoundTrip() {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float f = static_cast<float>(FromStored<T>(bits));
    const uint16_t again = T(f).bits;
    if (std::isnan(f)) {  // quiet, of the same sign and payload
      const uint16_t quiet = std::is_same_v<T, half> ? 0x200 : 0x40;
      ASSERT_EQ(again, bits | quiet) << bits;
    } else {
      ASSERT_EQ(again, bits);
    }
  }
}

TEST(HalfTest, AllValuesRoundTrip) { ExpectAllRoundTrip<half>(); }
TEST(BFloat16Test, AllValuesRoundTrip) { ExpectAllRoundTrip<bfloat16>(); }

TEST(HalfTest, WidensToWhatTheFormatSays) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const int exponent = bits >> 10;
    const int mantissa = bits & 0x3ff;
    const double expected = exponent == 0
                                ? std::ldexp(mantissa, -24)
                                : std::ldexp(1024 + mantissa, exponent - 25);
    ASSERT_EQ(static_cast<float>(FromStored<half>(bits)), expected);
    ASSERT_EQ(static_cast<float>(FromStored<half>(bits | 0x8000)), -expected);
  }
  EXPECT_TRUE(std::isinf(static_cast<float>(FromStored<half>(0x7c00))));
}

// Each midpoint between neighbours is a tie; the floats beside it are not.
TEST(HalfTest, RoundsToNearestEvenAtEveryTie) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const float low = static_cast<float>(FromStored<half>(bits));
    const float high = bits == 0x7bff
                           ? 65536.0f
                           : static_cast<float>(FromStored<half>(bits + 1));
    const float tie = low + (high - low) / 2;  // exact
    for (float f : {low, std::nextafter(tie, low), tie,
                    std::nextafter(tie, high), std::nextafter(high, low)}) {
      ASSERT_TRUE(SameAs(half(f), ToHalf(f))) << std::hexfloat << f;
      ASSERT_TRUE(SameAs(half(-f), ToHalf(-f))) << std::hexfloat << -f;
    }
  }
}

// A prime stride through all floats meets every exponent and sign.
TEST(HalfTest, RoundsAsDoubleArithmeticDoes) {
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 1021) {
    const float f = FromBits(static_cast<uint32_t>(bits));
    if (std::isnan(f)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(half(f))));
    } else {
      ASSERT_TRUE(SameAs(half(f), ToHalf(f))) << std::hexfloat << f;
    }
  }
}

TEST(BFloat16Test, RoundsAsDoubleArithmeticDoes) {
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 1021) {
    const float f = FromBits(static_cast<uint32_t>(bits));
    if (std::isnan(f)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(bfloat16(f))));
    } else {
      ASSERT_TRUE(SameAs(bfloat16(f), ToBFloat16(f))) << std::hexfloat << f;
    }
  }
}

TEST(BFloat16Test, RoundsToNearestEvenAtEveryTie) {
  for (uint32_t high = 0; high < 0x7f80; ++high) {
    for (uint32_t low : {0x7fffu, 0x8000u, 0x8001u, 0xffffu, 0x0000u}) {
      const float f = FromBits(high << 16 | low);
      ASSERT_TRUE(SameAs(bfloat16(f), ToBFloat16(f))) << std::hexfloat << f;
      ASSERT_TRUE(SameAs(bfloat16(-f), ToBFloat16(-f))) << std::hexfloat << f;
    }
  }
}

TEST(HalfTest, OverflowStartsAtTheTieAboveTheLargest) {
  EXPECT_EQ(half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(half(std::nextafter(65520.0f, 0.0f)).bits, 0x7bff);
  EXPECT_EQ(half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(half(-65520.0f).bits, 0xfc00);
  EXPECT_EQ(half(std::numeric_limits<float>::infinity()).bits, 0x7c00);
}

TEST(HalfTest, UnderflowKeepsTheSign) {
  EXPECT_EQ(half(0x1p-25f).bits, 0x0000);  // tie, to even
  EXPECT_EQ(half(-0x1p-25f).bits, 0x8000);
  EXPECT_EQ(half(0x1.8p-25f).bits, 0x0001);
  EXPECT_EQ(half(-0.0f).bits, 0x8000);
}

// A signalling NaN whose payload lies in the bits cut off stays a NaN.
TEST(HalfTest, NaNStaysNaN) {
  EXPECT_EQ(half(FromBits(0x7f800001)).bits, 0x7e00);
  EXPECT_EQ(half(FromBits(0xff800001)).bits, 0xfe00);
  EXPECT_EQ(bfloat16(FromBits(0x7f800001)).bits, 0x7fc0);
  EXPECT_EQ(Bits(static_cast<float>(FromStored<half>(0x7e00))), 0x7fc00000u);
}

}  // namespace
}  // namespace halftone
