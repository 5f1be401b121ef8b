#include "kernels/cpu/low_vector.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"

namespace halftone {
namespace kernels {
namespace {

constexpr int kPatterns = 1 << 16;

template <typename T>
std::vector<T> AllNumbers() {
  std::vector<T> numbers(kPatterns);
  for (int i = 0; i < kPatterns; ++i) {
    numbers[i].bits = static_cast<uint16_t>(i);
  }
  return numbers;
}

uint32_t BitsOf(float x) { return half_internal::Bits(x); }
bool IsNaN(float x) { return x != x; }

template <typename T>
void ExpectExact() {
  const std::vector<T> from = AllNumbers<T>();
  std::vector<T> to(kPatterns);
  ForIsa([&](auto isa) {
    using Low = LowVector<decltype(isa)::value>;
    for (int i = 0; i < kPatterns; i += Low::kSize) {
      float v[Low::kSize];
      Low::Load(from.data() + i, v);
      Low::StoreExact(v, to.data() + i);
    }
  });
  for (int i = 0; i < kPatterns; ++i) {
    if (IsNaN(static_cast<float>(from[i]))) {
      EXPECT_TRUE(IsNaN(static_cast<float>(to[i])));
    } else {
      ASSERT_EQ(to[i].bits, from[i].bits);
    }
  }
}

TEST(LowVectorTest, WhatWasLoadedIsStoredExactly) {
  ExpectExact<half>();
  ExpectExact<bfloat16>();
}

#ifdef HT_ISA_X86
// Numbers of all exponents, between those of 16 bits. Subnormal ones come one
// by one, in the first of two vectors or in the second.
std::vector<float> ManyFloats() {
  std::vector<float> floats(kPatterns);
  for (uint32_t i = 0; i < kPatterns; ++i) {
    const uint32_t tail = i * 40503 & 0xffff;
    floats[i * 513 % kPatterns] = half_internal::FromBits(i << 16 | tail);
  }
  return floats;
}

template <typename T>
void ExpectTwo() {
  using Two = LowVectors<Isa::kAvx512, 2>;
  const std::vector<T> from = AllNumbers<T>();
  const std::vector<float> floats = ManyFloats();
  std::vector<float> loaded(kPatterns), rounded(kPatterns);
  std::vector<T> to(kPatterns), exact(kPatterns), one_by_one(kPatterns);
  ForIsa([&](auto isa) {
    if constexpr (isa == Isa::kAvx512) {
      typename Two::Lanes lanes;
      for (int i = 0; i < kPatterns; i += Two::kElements) {
        Two::Load(from.data() + i, lanes);
        std::memcpy(loaded.data() + i, lanes, sizeof(lanes));
        Two::StoreExact(lanes, exact.data() + i);
        for (int v = 0; v < Two::kVectors; ++v) {
          Two::Low::StoreExact(lanes[v],
                               one_by_one.data() + i + v * Two::kSize);
        }
        std::memcpy(lanes, floats.data() + i, sizeof(lanes));
        Two::Store(lanes, to.data() + i);
        Two::Round(lanes, T());
        std::memcpy(rounded.data() + i, lanes, sizeof(lanes));
      }
    }
  });
  for (int i = 0; i < kPatterns; ++i) {
    const T stored(floats[i]);
    ASSERT_EQ(BitsOf(loaded[i]), BitsOf(static_cast<float>(from[i])));
    ASSERT_EQ(exact[i].bits, one_by_one[i].bits) << std::hex << from[i].bits;
    ASSERT_EQ(to[i].bits, stored.bits) << std::hex << BitsOf(floats[i]);
    ASSERT_EQ(BitsOf(rounded[i]), BitsOf(static_cast<float>(stored)));
  }
}

TEST(LowVectorTest, TwoVectorsAreWhatTheyAreOneByOne) {
  if (HostIsa() != Isa::kAvx512) GTEST_SKIP() << "no AVX-512";
  ExpectTwo<half>();
  ExpectTwo<bfloat16>();
}
#endif

TEST(LowVectorTest, AnyLaneIsSeen) {
  ForIsa([](auto isa) {
    using Low = LowVector<decltype(isa)::value>;
    int32_t lanes[Low::kSize] = {};
    EXPECT_FALSE(Low::IsAny(lanes));
    for (int32_t& lane : lanes) {
      lane = 1;
      EXPECT_TRUE(Low::IsAny(lanes));
      lane = 0;
    }
  });
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
