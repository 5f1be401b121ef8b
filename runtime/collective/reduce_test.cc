#include "runtime/collective/reduce.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "graph/base/dtype.h"
#include "graph/base/half.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

template <typename T>
using Wide = std::conditional_t<sizeof(T) == 2, float, T>;

constexpr DType kDTypes[] = {DType::kF32, DType::kF16, DType::kBF16,
                             DType::kF64, DType::kI32, DType::kI64,
                             DType::kU8};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin};

template <typename T>
std::vector<T> Reduce(DType dtype, ReduceOp op, std::vector<T> a,
                      const std::vector<T>& b) {
  auto reduce = FindReduceFunction(dtype, op);
  EXPECT_TRUE(reduce.ok()) << reduce.status();
  (*reduce)(a.data(), a.data(), b.data(), a.size());
  return a;
}

std::vector<uint8_t> RandomBytes(int64_t bytes, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> data(bytes);
  for (uint8_t& byte : data) byte = static_cast<uint8_t>(random());
  return data;
}

TEST(Reduce, Literals) {
  EXPECT_EQ(Reduce<float>(DType::kF32, ReduceOp::kSum, {1, 2}, {3, 0.5f}),
            (std::vector<float>{4, 2.5f}));
  EXPECT_EQ(Reduce<double>(DType::kF64, ReduceOp::kMax, {1, 2}, {3, 0.5}),
            (std::vector<double>{3, 2}));
  EXPECT_EQ(Reduce<int64_t>(DType::kI64, ReduceOp::kMin, {-1, 2}, {3, 1}),
            (std::vector<int64_t>{-1, 1}));
  EXPECT_EQ(Reduce<uint8_t>(DType::kU8, ReduceOp::kSum, {200}, {100}),
            (std::vector<uint8_t>{44}));
  EXPECT_EQ(Reduce<int32_t>(DType::kI32, ReduceOp::kSum, {2147483647}, {1}),
            (std::vector<int32_t>{-2147483647 - 1}));
}

TEST(Reduce, LowTypesAddInF32AndRoundOnce) {
  const auto sum16 = [](float a, float b) {
    return static_cast<float>(
        Reduce<half>(DType::kF16, ReduceOp::kSum, {half(a)}, {half(b)})[0]);
  };
  EXPECT_EQ(sum16(2048, 1), 2048);  // a tie: to even
  EXPECT_EQ(sum16(2048, 3), 2052);  // a tie: to even
  EXPECT_EQ(sum16(65504, 15), 65504);
  EXPECT_EQ(sum16(65504, 16), INFINITY);
  EXPECT_EQ(sum16(0x1p-24f, 0x1p-24f), 0x1p-23f);  // subnormals are kept
  EXPECT_TRUE(std::isnan(sum16(INFINITY, -INFINITY)));
  const auto bsum = [](float a, float b) {
    return static_cast<float>(Reduce<bfloat16>(
        DType::kBF16, ReduceOp::kSum, {bfloat16(a)}, {bfloat16(b)})[0]);
  };
  EXPECT_EQ(bsum(256, 1), 256);
  EXPECT_EQ(bsum(256, 3), 260);
}

TEST(Reduce, MaxAndMinPropagateNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (ReduceOp op : {ReduceOp::kMax, ReduceOp::kMin}) {
    EXPECT_TRUE(std::isnan(Reduce<float>(DType::kF32, op, {nan}, {1})[0]));
    EXPECT_TRUE(std::isnan(Reduce<float>(DType::kF32, op, {1}, {nan})[0]));
  }
}

// Sets all NaNs to one bit pattern: where both terms are NaN, either may stay.
template <typename T>
void UnifyNaNs(std::vector<uint8_t>& bytes) {
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T x;
    std::memcpy(&x, &bytes[at], sizeof(T));
    if (std::isnan(static_cast<double>(static_cast<Wide<T>>(x)))) {
      std::memset(&bytes[at], 0xff, sizeof(T));
    }
  }
}

void UnifyNaNs(DType dtype, std::vector<uint8_t>& bytes) {
  if (dtype == DType::kF32) UnifyNaNs<float>(bytes);
  if (dtype == DType::kF64) UnifyNaNs<double>(bytes);
  if (dtype == DType::kF16) UnifyNaNs<half>(bytes);
  if (dtype == DType::kBF16) UnifyNaNs<bfloat16>(bytes);
}

// All bit patterns, sizes with and without a rest, in and out of place.
TEST(Reduce, FastEqualsPortableBitForBit) {
  for (DType dtype : kDTypes) {
    for (ReduceOp op : kOps) {
      ReduceFunction fast = *FindReduceFunction(dtype, op);
      ReduceFunction portable = *FindPortableReduceFunction(dtype, op);
      for (int64_t count : {0, 1, 7, 16, 1000, 70001}) {
        const int64_t bytes = count * SizeOf(dtype);
        const std::vector<uint8_t> a = RandomBytes(bytes, 1);
        const std::vector<uint8_t> b = RandomBytes(bytes, 2);
        std::vector<uint8_t> expected(bytes);
        portable(expected.data(), a.data(), b.data(), count);
        UnifyNaNs(dtype, expected);
        const auto check = [&](std::vector<uint8_t> actual, const char* how) {
          UnifyNaNs(dtype, actual);
          EXPECT_TRUE(actual == expected)
              << Name(op) << " " << Name(dtype) << " " << count << " " << how;
        };
        std::vector<uint8_t> actual(bytes);
        fast(actual.data(), a.data(), b.data(), count);
        check(actual, "");
        actual = a;
        fast(actual.data(), actual.data(), b.data(), count);
        check(actual, "in place of a");
        actual = b;
        fast(actual.data(), a.data(), actual.data(), count);
        check(actual, "in place of b");
      }
    }
  }
}

TEST(Reduce, EveryHalfPairWithItsNeighbours) {
  ReduceFunction fast = *FindReduceFunction(DType::kF16, ReduceOp::kSum);
  std::vector<half> a(1 << 16);
  std::vector<half> b(1 << 16);
  for (uint32_t shift : {0u, 1u, 0x400u, 0x3c00u, 0x8000u, 0x9001u}) {
    for (uint32_t i = 0; i < a.size(); ++i) {
      a[i].bits = static_cast<uint16_t>(i);
      b[i].bits = static_cast<uint16_t>(i + shift);
    }
    std::vector<half> sum(a.size());
    fast(sum.data(), a.data(), b.data(), a.size());
    for (uint32_t i = 0; i < a.size(); ++i) {
      const half expected(static_cast<float>(a[i]) + static_cast<float>(b[i]));
      if (std::isnan(static_cast<float>(expected))) {
        EXPECT_TRUE(std::isnan(static_cast<float>(sum[i])));
      } else {
        EXPECT_EQ(sum[i].bits, expected.bits) << i << " shift " << shift;
      }
    }
  }
}

TEST(Reduce, ScaleRoundsOnce) {
  std::vector<half> x(1 << 16);
  for (uint32_t i = 0; i < x.size(); ++i) {
    x[i].bits = static_cast<uint16_t>(i);
  }
  const std::vector<half> before = x;
  FindScaleFunction(DType::kF16, ReduceOp::kSum)(x.data(), 0.25f, x.size());
  for (uint32_t i = 0; i < x.size(); ++i) {
    const half expected(static_cast<float>(before[i]) * 0.25f);
    if (std::isnan(static_cast<float>(expected))) continue;
    EXPECT_EQ(x[i].bits, expected.bits) << i;
  }
  double y = 3;
  FindScaleFunction(DType::kF64, ReduceOp::kSum)(&y, 0.5f, 1);
  EXPECT_EQ(y, 1.5);
  EXPECT_EQ(FindScaleFunction(DType::kI64, ReduceOp::kSum), nullptr);
  EXPECT_EQ(FindScaleFunction(DType::kF32, ReduceOp::kMax), nullptr);
}

TEST(Reduce, ScaleRoundsBFloat16Once) {
  std::vector<bfloat16> x(1 << 16);
  for (uint32_t i = 0; i < x.size(); ++i) {
    x[i].bits = static_cast<uint16_t>(i);
  }
  const std::vector<bfloat16> before = x;
  FindScaleFunction(DType::kBF16, ReduceOp::kSum)(x.data(), 0.5f, x.size());
  for (uint32_t i = 0; i < x.size(); ++i) {
    const bfloat16 expected(static_cast<float>(before[i]) * 0.5f);
    if (std::isnan(static_cast<float>(expected))) continue;
    EXPECT_EQ(x[i].bits, expected.bits) << i;
  }
}

TEST(Reduce, RefusesBool) {
  EXPECT_FALSE(FindReduceFunction(DType::kBool, ReduceOp::kMax).ok());
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
