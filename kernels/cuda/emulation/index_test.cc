#include "kernels/cuda/index.h"

#include <cstdint>
#include <initializer_list>

#include "gtest/gtest.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

constexpr int64_t kMost = INT32_MAX;  // of what is divided by multiplying

TEST(DividerTest, DividesAsTheProcessorDoes) {
  for (int64_t d : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{5}, int64_t{7},
                    int64_t{64}, int64_t{641}, int64_t{1000}, int64_t{65535},
                    int64_t{65536}, int64_t{65537}, int64_t{12345678},
                    int64_t{1} << 30, (int64_t{1} << 30) + 1, kMost - 1, kMost,
                    kMost + 1, int64_t{5} << 32}) {
    const Divider divider(d);
    EXPECT_EQ(divider.divisor(), d);
    const auto check = [&](int64_t n) {
      if (n < 0) return;
      EXPECT_EQ(divider.Divide(n), n / d) << n << " / " << d;
      EXPECT_EQ(divider.Remainder(n), n % d) << n << " / " << d;
    };
    // Around multiples, small and large, and around the largest numbers.
    for (int64_t k : {int64_t{0}, int64_t{1}, int64_t{2}, kMost / d,
                      kMost / d + 1, (int64_t{1} << 40) / d}) {
      for (int64_t i = -2; i <= 2; ++i) check(k * d + i);
    }
    for (int64_t i = -2; i <= 2; ++i) check(kMost + i);
    for (int64_t n = 1; n < int64_t{1} << 50; n = n * 3 + 7) check(n);
  }
}

// Positions beyond 2^31 of a tensor that no test could hold.
TEST(LoopsTest, OffsetsOfLargeTensors) {
  Nest nest;
  nest.dims = {70000, 300, 257};  // 5.4 * 10^9 elements
  nest.strides = {257, 70000 * 257, 1};
  const Loops loops(nest);
  for (int64_t a : {0, 1, 69999}) {
    for (int64_t b : {0, 299}) {
      for (int64_t c : {0, 256}) {
        EXPECT_EQ(loops.OffsetOf((a * 300 + b) * 257 + c),
                  a * 257 + b * 70000 * 257 + c);
      }
    }
  }
  EXPECT_EQ(Loops().OffsetOf(0), 0);
}

}  // namespace
}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
