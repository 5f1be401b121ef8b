#include "kernels/cpu/random.h"

#include <vector>

#include "graph/base/philox.h"
#include "gtest/gtest.h"

namespace halftone {
namespace kernels {
namespace {

// Every element its own word, wherever a run begins and ends, and where the
// number of the block wraps.
TEST(RandomTest, AllInstructionSetsDrawTheSameBits) {
  constexpr uint64_t kKey = 0x123456789abcdef, kStep = (uint64_t{5} << 32) | 9;
  constexpr uint64_t kSample = (uint64_t{3} << 32) | 7;
  const int64_t firsts[] = {0, 3, 130, (int64_t{1} << 34) - 18};
  for (int isa = 0; isa <= static_cast<int>(HostIsa()); ++isa) {
    for (const int64_t first : firsts) {
      for (const int64_t n : {int64_t{1}, int64_t{35}, kConvertBlock}) {
        uint32_t buffer[kConvertBlock + 8];
        const uint32_t* bits = DrawBits(kKey, kStep, kSample, first, n, buffer,
                                        static_cast<Isa>(isa));
        for (int64_t i = 0; i < n; ++i) {
          const auto block = static_cast<uint32_t>((first + i) / 4);
          ASSERT_EQ(bits[i],
                    PhiloxDraw(kKey, kStep, kSample, block).x[(first + i) % 4])
              << isa << " " << first << " " << i;
        }
      }
    }
  }
}

template <typename T>
void ExpectDropped(double p) {
  constexpr uint64_t kKey = 77, kStep = 3, kSample = 9;
  const auto dropout = functors::DropoutOp::Of(p);
  const float scale = static_cast<float>(1 / (1 - p));
  for (const int64_t first : {0, 1, 3, 12541}) {
    for (const int64_t n : {1, 3, 5, 32, 35, 1500}) {
      std::vector<T> x(n), y(n);
      for (int64_t i = 0; i < n; ++i) x[i] = static_cast<T>(0.1f * (i + 1));
      ApplyDropout(dropout, kKey, kStep, kSample, first, n, x.data(), y.data());
      for (int64_t i = 0; i < n; ++i) {
        const auto block = static_cast<uint32_t>((first + i) / 4);
        const uint32_t bits =
            PhiloxDraw(kKey, kStep, kSample, block).x[(first + i) % 4];
        const bool kept = ToUniform(bits) >= static_cast<float>(p);
        const T expected =
            static_cast<T>(kept ? static_cast<float>(x[i]) * scale : 0.0f);
        ASSERT_EQ(static_cast<float>(y[i]), static_cast<float>(expected))
            << p << " " << first << " " << i;
      }
    }
  }
}

TEST(RandomTest, DropoutIsByTheDrawsOfItsElements) {
  for (double p : {0.0, 1e-9, 0.1, 0.5, 0.99999999}) {
    ExpectDropped<float>(p);
    ExpectDropped<half>(p);
    ExpectDropped<bfloat16>(p);
  }
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
