#include "runtime/compare/value_errors.h"

#include <cmath>
#include <limits>
#include <vector>

#include "graph/base/dtype.h"
#include "graph/base/half.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

ValueErrors OfHalves(const std::vector<float>& values,
                     const std::vector<float>& reference, float scale = 1) {
  std::vector<half> halves;
  for (const float x : values) halves.emplace_back(x);
  return ErrorsOf(DType::kF16, halves.data(), reference.data(), scale,
                  static_cast<int64_t>(halves.size()), /*threads=*/1);
}

TEST(ValueErrors, AreThoseOfEachElement) {
  const ValueErrors errors = OfHalves({1, 2.5, -3}, {1, 2, -4});
  EXPECT_EQ(errors.elements, 3);
  EXPECT_EQ(errors.non_finite, 0);
  EXPECT_EQ(errors.max_abs_error, 1);
  EXPECT_DOUBLE_EQ(errors.mean_abs_error(), 1.5 / 3);
  EXPECT_EQ(errors.max_rel_error, 0.25);
  EXPECT_DOUBLE_EQ(errors.relative_error(), std::sqrt(1.25 / 21));
  EXPECT_DOUBLE_EQ(errors.cosine(), 18 / std::sqrt(16.25 * 21));
  EXPECT_EQ(errors.max_reference, 4);
}

// Of f16 1024 steps lie between two powers of two.
TEST(ValueErrors, UlpsAreStepsOfTheDType) {
  EXPECT_EQ(OfHalves({2}, {1}).max_ulps, 1024);
  EXPECT_EQ(OfHalves({1 + 0x1p-10f}, {1}).max_ulps, 1);
  // The reference is rounded first.
  EXPECT_EQ(OfHalves({1}, {1 + 0x1p-12f}).max_ulps, 0);
  // Across 0: one subnormal step on each side.
  EXPECT_EQ(OfHalves({0x1p-24f}, {-0x1p-24f}).max_ulps, 2);
  const float one = 1, next = 1 + 0x1p-23f;
  EXPECT_EQ(ErrorsOf(DType::kF32, &next, &one, 1, 1, 1).max_ulps, 1);
  const bfloat16 low(1 + 0x1p-7f);
  EXPECT_EQ(ErrorsOf(DType::kBF16, &low, &one, 1, 1, 1).max_ulps, 1);
}

TEST(ValueErrors, CountWhatIsNotFinite) {
  const ValueErrors errors =
      OfHalves({kInf, NAN, 1, -kInf}, {7e4, 1, 1, -kInf});
  EXPECT_EQ(errors.elements, 3);  // -inf is what it is in the reference
  EXPECT_EQ(errors.non_finite, 2);
  EXPECT_EQ(errors.overflow, 1);
  EXPECT_EQ(errors.max_abs_error, 0);
  EXPECT_EQ(errors.relative_error(), kInf);
  EXPECT_DOUBLE_EQ(errors.share(errors.overflow), 1.0 / 3);
}

TEST(ValueErrors, CountWhatIsFlushedToZero) {
  const ValueErrors errors = OfHalves({0, 0, 0}, {1e-9f, 0, 1});
  EXPECT_EQ(errors.underflow, 1);  // 1 is wrong, but no underflow
}

// The gradient 2^-26 is no f16; scaled by 1024 it is.
TEST(ValueErrors, AreUnscaled) {
  const ValueErrors lost = OfHalves({0}, {0x1p-26f});
  EXPECT_EQ(lost.underflow, 1);
  const ValueErrors kept = OfHalves({0x1p-16f}, {0x1p-26f}, 1024);
  EXPECT_EQ(kept.underflow, 0);
  EXPECT_EQ(kept.max_abs_error, 0);
  EXPECT_EQ(kept.max_reference, 0x1p-26f);
  EXPECT_EQ(OfHalves({3}, {1}, 2).max_abs_error, 0.5);
}

// A sum that is 0 but for rounding: 2^-24 of summands of 1.
TEST(ValueErrors, OfWhatCancelsAreThoseOfItsSummands) {
  ValueErrors errors = OfHalves({0x1p-11f}, {0x1p-24f});
  EXPECT_GT(errors.relative_error(), 1000);
  errors.rounding = 0x1p-23;
  EXPECT_NEAR(errors.relative_error(), 0x1p-11, 1e-6);
  errors.rounding = 0x1p-25;
  EXPECT_GT(errors.relative_error(), 1000);
}

TEST(ValueErrors, DoNotDependOnThreads) {
  std::vector<float> reference(100001), values;
  for (size_t i = 0; i < reference.size(); ++i) {
    reference[i] = std::sin(static_cast<float>(i));
    values.push_back(reference[i] + 1e-3f * std::cos(7.0f * i));
  }
  std::vector<half> halves(values.begin(), values.end());
  const auto of = [&](int threads) {
    return ErrorsOf(DType::kF16, halves.data(), reference.data(), 1,
                    static_cast<int64_t>(halves.size()), threads);
  };
  const ValueErrors one = of(1), three = of(3);
  EXPECT_EQ(one.elements, 100001);
  EXPECT_EQ(one.sum_abs_error, three.sum_abs_error);
  EXPECT_EQ(one.sum_squared_error, three.sum_squared_error);
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    sum += std::fabs(static_cast<double>(static_cast<float>(halves[i])) -
                     reference[i]);
  }
  // Sums of 16 lanes against one after the other, both in f64.
  EXPECT_NEAR(one.sum_abs_error, sum, 1e-10 * sum);
}

TEST(ValueErrors, WrittenScaledAreThoseOfAHandfulOfRoundings) {
  const std::vector<float> reference = {1, 0x1p-26f, -3, 7e4f};
  std::vector<half> written(4);
  WriteScaled(reference.data(), 2, DType::kF16, written.data(), 4, 1);
  EXPECT_EQ(static_cast<float>(written[0]), 2);
  EXPECT_EQ(static_cast<float>(written[1]), 0);  // 2^-25 ties to even
  EXPECT_EQ(static_cast<float>(written[2]), -6);
  EXPECT_EQ(static_cast<float>(written[3]), kInf);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
