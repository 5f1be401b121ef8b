#include "runtime/report/exponents.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "graph/base/half.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

ExponentCounts Of(const std::vector<float>& values) {
  std::vector<uint32_t> words;
  for (const float v : values) words.push_back(half_internal::Bits(v));
  ExponentCounts counts;
  counts.AddF32(words);
  return counts;
}

// By f16's own arithmetic, an element at a time.
ExponentHistogram Exact(const std::vector<float>& values, int shift) {
  ExponentHistogram h;
  for (const float v : values) {
    const float scaled = std::ldexp(std::fabs(v), shift);
    const float held = static_cast<float>(half(scaled));
    if (std::isnan(v)) {
      ++h.nan;
    } else if (v == 0) {
      ++h.zero;
    } else if (held == 0) {
      ++h.flushed;
    } else if (std::isinf(held)) {
      ++h.overflowed;
    } else {
      ++h.bins[std::max(std::ilogb(scaled), kLeastExponent) - kLeastExponent];
    }
  }
  return h;
}

void ExpectSame(const ExponentHistogram& a, const ExponentHistogram& b) {
  EXPECT_EQ(a.bins, b.bins);
  EXPECT_EQ(a.zero, b.zero);
  EXPECT_EQ(a.flushed, b.flushed);
  EXPECT_EQ(a.overflowed, b.overflowed);
  EXPECT_EQ(a.nan, b.nan);
}

// What lies at, just below and just above each of f16's bounds.
std::vector<float> Bounds() {
  std::vector<float> values = {0,      -0.0f,  kInf, -kInf, std::nanf(""),
                               1e-45f, 1e-38f, 3e38f};
  for (int e = -60; e <= 40; ++e) {
    for (const float mantissa : {1.0f, 1.5f, 65520 / 32768.0f}) {
      const float v = std::ldexp(mantissa, e);
      for (const float near :
           {v, std::nextafter(v, 0.0f), std::nextafter(v, kInf)}) {
        values.push_back(near);
        values.push_back(-near);
      }
    }
  }
  return values;
}

TEST(ExponentHistogram, IsThatOfF16AtEachBound) {
  const std::vector<float> values = Bounds();
  const ExponentCounts counts = Of(values);
  for (int shift = -30; shift <= 30; ++shift) {
    SCOPED_TRACE(shift);
    const ExponentHistogram h = counts.Histogram(shift);
    ExpectSame(h, Exact(values, shift));
    EXPECT_EQ(h.elements(), static_cast<int64_t>(values.size()));
  }
}

// All words of the 16-bit formats are what their values are in f32.
TEST(ExponentCounts, CountsWordsOfEachFormat) {
  std::vector<uint16_t> words(1 << 16);
  std::vector<float> of_f16, of_bf16;
  for (uint32_t word = 0; word < words.size(); ++word) {
    words[word] = word;
    of_f16.push_back(half_internal::HalfToFloat(word));
    of_bf16.push_back(half_internal::FromBits(word << 16));
  }
  ExponentCounts f16, bf16;
  f16.AddF16(words);
  bf16.AddBF16(words);
  ExpectSame(f16.Histogram(), Exact(of_f16, 0));
  ExpectSame(bf16.Histogram(), Exact(of_bf16, 0));
  // Each of f16's exponents: 1,024 mantissas of both signs, and of the
  // subnormals 2^0, 2^1 ... 2^9 mantissas.
  for (int bin = 0; bin < kExponentBins; ++bin) {
    EXPECT_EQ(f16.Histogram().bins[bin], 2 << std::min(bin, 10)) << bin;
  }
  f16.Add(bf16);
  EXPECT_EQ(f16.Histogram().elements(), 1 << 17);
}

TEST(ExponentHistogram, SharesLeaveOutZerosAndNaN) {
  const ExponentHistogram h =
      Of({0, 0, std::nanf(""), 1, 1, 0x1p-30f, 1e9f}).Histogram();
  EXPECT_EQ(h.flushed_share(), 0.25);
  EXPECT_EQ(h.overflowed_share(), 0.25);
  EXPECT_EQ(Of({0}).Histogram().flushed_share(), 0);
}

TEST(ScaleRange, EndsWhereF16Ends) {
  // Held at a scale of 1,024.
  std::vector<float> values(1000, 1.0f);
  ScaleRange range = Of(values).Scales(1024);
  EXPECT_EQ(range.most, 1024 * 32768.0f);  // 2^15 is held, 2^16 is not
  EXPECT_EQ(range.least, 1024 * 0x1p-24f);
  // One in a thousand is too many, and at a tie it becomes 0.
  values.push_back(0x1p-10f);
  range = Of(values).Scales(1024);
  EXPECT_EQ(range.least, 1024 * 0x1p-24f);
  values[0] = 0x1p-10f;
  range = Of(values).Scales(1024);
  EXPECT_EQ(range.least, 1024 * 0x1p-14f);
  // What rounds up to 2^16 ends the range a power of two earlier.
  values[0] = std::nextafter(2.0f, 0.0f);
  EXPECT_EQ(Of(values).Scales(1024).most, 1024 * 16384.0f);
}

// By trying each scale.
TEST(ScaleRange, IsWhatEachScaleWouldDo) {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    std::normal_distribution<float> exponent(-8.0f - round, 4);
    std::vector<float> values(5000);
    for (float& v : values) v = std::exp2(exponent(random));
    const ExponentCounts counts = Of(values);
    const ScaleRange range = counts.Scales(256);
    for (int to = -20; to <= 40; ++to) {
      const ExponentHistogram h = Exact(values, to - 8);
      const float scale = std::ldexp(1.0f, to);
      EXPECT_EQ(h.overflowed == 0, scale <= range.most) << to;
      EXPECT_EQ(h.flushed_share() < kMayBeFlushed, scale >= range.least) << to;
    }
    // Between two powers of two neither end is further out.
    const ScaleRange inner = counts.Scales(256 * 1.6f);
    EXPECT_EQ(inner.most, range.most);
    EXPECT_EQ(inner.least, *range.least * 2);
  }
}

TEST(ScaleRange, SaysNothingWhereNothingIsKnown) {
  const ScaleRange none = Of({0, 0, std::nanf("")}).Scales(1);
  EXPECT_FALSE(none.most.has_value());
  EXPECT_FALSE(none.least.has_value());
  EXPECT_FALSE(Of({1, kInf}).Scales(1).most.has_value());
  EXPECT_TRUE(Of({1, kInf}).Scales(1).least.has_value());
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
