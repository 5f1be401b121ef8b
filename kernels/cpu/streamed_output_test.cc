// Copies and parts. What kernels stream is held to what they store by
// tests/ops.
#include "kernels/cpu/streamed_output.h"

#include <cstring>
#include <vector>

#include "gtest/gtest.h"

namespace halftone {
namespace kernels {
namespace {

TEST(StreamBytes, OfAnyLengthToAnyPlace) {
  constexpr int kRoom = 1024;
  std::vector<char> from(kRoom);
  for (int i = 0; i < kRoom; ++i) from[i] = static_cast<char>(i * 7 + 1);
  for (int place : {0, 1, 31, 63, 64, 66}) {
    for (int n : {0, 1, 33, 63, 64, 65, 127, 128, 300, 640}) {
      alignas(64) char to[kRoom] = {};
      StreamBytes(from.data() + 3, to + place, n);
      FinishStores();
      EXPECT_EQ(std::memcmp(from.data() + 3, to + place, n), 0);
      std::memset(to + place, 0, n);
      for (int i = 0; i < kRoom; ++i) ASSERT_EQ(to[i], 0) << i;
    }
  }
}

class Streamed : public ::testing::Test {
 protected:
  void SetUp() override { SetLeastStreamedBytes(0); }
  void TearDown() override { SetLeastStreamedBytes(least_); }

 private:
  const int64_t least_ = LeastStreamedBytes();
};

TEST_F(Streamed, Parts) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kI64}) {
    const auto size = static_cast<int64_t>(SizeOf(dtype));
    constexpr int64_t kElements = 5000;
    std::vector<char> data(kElements * size);
    const StreamedOutput output(data.data(), dtype, kElements, false);
    std::vector<int64_t> made;
    output.Write(100, kElements, [&](int64_t at, int64_t n, void* to) {
      EXPECT_LE(n, kConvertBlock);
      std::memset(to, static_cast<int>(at % 100 + 1), n * size);
      made.insert(made.end(), {at, n});
    });
    int64_t next = 100;
    for (size_t i = 0; i < made.size(); i += 2) {
      ASSERT_EQ(made[i], next);
      next += made[i + 1];
      for (int64_t b = made[i] * size; b < next * size; ++b) {
        ASSERT_EQ(data[b], static_cast<char>(made[i] % 100 + 1)) << b;
      }
    }
    EXPECT_EQ(next, kElements);
    EXPECT_GT(made.size(), 4u);
  }
}

TEST_F(Streamed, AsUsualItIsMadeInPlace) {
  alignas(64) float x[8] = {};
  const StreamedOutput output(x, DType::kF32, 8, /*as_usual=*/true);
  output.Write(0, 8, [&](int64_t, int64_t, void* to) { EXPECT_EQ(to, x); });
}

}  // namespace
}  // namespace kernels
}  // namespace halftone
