#include "kernels/cpu/random.h"

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

}  // namespace
}  // namespace kernels
}  // namespace halftone
