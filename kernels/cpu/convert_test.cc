#include "kernels/cpu/convert.h"

#include <cstring>
#include <vector>

#include "graph/base/philox.h"
#include "gtest/gtest.h"

namespace halftone {
namespace kernels {
namespace {

std::vector<Isa> HostIsas() {
  std::vector<Isa> isas = {Isa::kBaseline};
  if (HostIsa() >= Isa::kAvx2) isas.push_back(Isa::kAvx2);
  if (HostIsa() >= Isa::kAvx512) isas.push_back(Isa::kAvx512);
  return isas;
}

float FloatOf(uint32_t bits) { return half_internal::FromBits(bits); }
uint32_t BitsOf(float f) { return half_internal::Bits(f); }

// Floats in all exponents, with all roundings to 10 and 7 bits of fraction:
// ties, their neighbours and random tails; infinities and NaNs too.
std::vector<float> ManyFloats() {
  std::vector<float> floats;
  for (uint32_t high = 0; high < 0x10000; ++high) {
    const uint32_t base = high << 16;
    for (uint32_t low : {0x0u, 0x1u, 0xfffu, 0x1000u, 0x1001u, 0x2fffu, 0x3000u,
                         0x3001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      floats.push_back(FloatOf(base | low));
    }
    const Philox4 random = Philox(1, Philox4{{high, 0, 0, 0}});
    floats.push_back(FloatOf(random.x[0]));
    floats.push_back(FloatOf(base | (random.x[1] & 0xffff)));
  }
  return floats;
}

template <typename T>
std::vector<T> AllValues() {
  std::vector<T> values(65536);
  for (uint32_t i = 0; i < 65536; ++i) {
    values[i].bits = static_cast<uint16_t>(i);
  }
  return values;
}

template <typename T>
void ExpectSameWidening(Isa isa) {
  const std::vector<T> values = AllValues<T>();
  std::vector<float> found(values.size());
  ToFloat(values.data(), found.data(), 65536, isa);
  for (size_t i = 0; i < values.size(); ++i) {
    const float expected = static_cast<float>(values[i]);
    ASSERT_EQ(BitsOf(found[i]), BitsOf(expected)) << values[i].bits;
  }
}

template <typename T>
void ExpectSameRounding(Isa isa) {
  const std::vector<float> floats = ManyFloats();
  std::vector<T> found(floats.size());
  FromFloat(floats.data(), found.data(), static_cast<int64_t>(floats.size()),
            isa);
  for (size_t i = 0; i < floats.size(); ++i) {
    ASSERT_EQ(found[i].bits, T(floats[i]).bits)
        << std::hex << BitsOf(floats[i]);
  }
}

TEST(ConvertTest, AllInstructionSetsAgree) {
  for (Isa isa : HostIsas()) {
    SCOPED_TRACE(static_cast<int>(isa));
    ExpectSameWidening<half>(isa);
    ExpectSameWidening<bfloat16>(isa);
    ExpectSameRounding<half>(isa);
    ExpectSameRounding<bfloat16>(isa);
  }
}

TEST(ConvertTest, HalvesSurviveTheWayThroughFloat) {
  for (half h : AllValues<half>()) {
    const half back(static_cast<float>(h));
    const bool nan = (h.bits & 0x7fff) > 0x7c00;
    EXPECT_EQ(back.bits, nan ? h.bits | 0x200 : h.bits);
  }
}

// Nothing before or behind is read into or written.
TEST(ConvertTest, EveryLength) {
  for (Isa isa : HostIsas()) {
    for (int n = 0; n <= 40; ++n) {
      std::vector<float> from(n), back(n + 2, -1);
      std::vector<half> low(n + 2, half(-1.0f));
      for (int i = 0; i < n; ++i) from[i] = static_cast<float>(i + 1);
      FromFloat(from.data(), low.data() + 1, n, isa);
      ToFloat(low.data() + 1, back.data() + 1, n, isa);
      EXPECT_EQ(back.front(), -1);
      EXPECT_EQ(back.back(), -1);
      EXPECT_EQ(low.front().bits, half(-1.0f).bits);
      EXPECT_EQ(low.back().bits, half(-1.0f).bits);
      for (int i = 0; i < n; ++i) EXPECT_EQ(back[i + 1], i + 1);
    }
  }
}

// Over several blocks, the last one of any length.
TEST(ConvertTest, RoundedInPlaceAsIfStored) {
  std::vector<float> floats = ManyFloats();
  floats.resize(2 * kConvertBlock + 5, 0.1f);
  const int64_t n = static_cast<int64_t>(floats.size());
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    std::vector<float> rounded = floats;
    RoundTo(dtype, rounded.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      const float wanted =
          dtype == DType::kF16    ? static_cast<float>(half(floats[i]))
          : dtype == DType::kBF16 ? static_cast<float>(bfloat16(floats[i]))
                                  : floats[i];
      ASSERT_EQ(BitsOf(rounded[i]), BitsOf(wanted)) << i;
    }
  }
}

TEST(ConvertTest, FromIntegers) {
  const uint8_t bytes[] = {0, 1, 255};
  const int32_t ints[] = {-5, 16777217, 7};
  float found[3];
  ToFloat(DType::kU8, bytes, found, 3);
  EXPECT_EQ(found[2], 255);
  ToFloat(DType::kI32, ints, found, 3);
  EXPECT_EQ(found[0], -5);
  EXPECT_EQ(found[1], 16777216);
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
