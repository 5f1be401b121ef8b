#include "kernels/cuda/norm_vectors.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/functors/norm.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

constexpr float kEpsilon = 1e-3f;

// Over one block, one block, several.
class NormVectorsTest : public ::testing::TestWithParam<int> {
 protected:
  NormVectorsTest() : n_(GetParam()) {
    stream_ = *device_->CreateStream("compute");
  }
  // Numbers of [C], other ones for another `salt`.
  std::vector<float> Numbers(int salt) const {
    std::vector<float> numbers(n_);
    for (int c = 0; c < n_; ++c) {
      numbers[c] = 0.25f + static_cast<float>((c * 7 + salt * 5) % 23) / 8;
    }
    return numbers;
  }

  const int n_;
  std::unique_ptr<runtime::Device> device_ = runtime::MakeCpuDevice(0, 1);
  std::unique_ptr<runtime::Stream> stream_;
};

TEST_P(NormVectorsTest, HalfFactors) {
  const auto scale = Numbers(1), bias = Numbers(2), mean = Numbers(3),
             variance = Numbers(4);
  std::vector<half> factor(n_ + 1, half(-7.0f)), offset(n_ + 1, half(-7.0f));
  const HalfFactorsCall call{&scale[0], &bias[0], &mean[0],   &variance[0],
                             kEpsilon,  n_,       &factor[0], &offset[0]};
  ASSERT_TRUE(Enqueue(call, *stream_, "op").ok());
  for (int c = 0; c < n_; ++c) {
    const functors::HalfFactors expected = functors::HalfFactorsOf(
        scale[c], bias[c], mean[c], variance[c], kEpsilon);
    EXPECT_EQ(factor[c].bits, expected.factor.bits) << c;
    EXPECT_EQ(offset[c].bits, expected.offset.bits) << c;
  }
  EXPECT_EQ(factor[n_].bits, half(-7.0f).bits);
  EXPECT_EQ(offset[n_].bits, half(-7.0f).bits);
}

TEST_P(NormVectorsTest, Deviations) {
  const auto variance = Numbers(1);
  std::vector<float> inverse(n_ + 1, -7.0f);
  ASSERT_TRUE(
      Enqueue({&variance[0], kEpsilon, n_, &inverse[0]}, *stream_, "op").ok());
  for (int c = 0; c < n_; ++c) {
    EXPECT_EQ(inverse[c], functors::InverseDeviation(variance[c], kEpsilon));
  }
  EXPECT_EQ(inverse[n_], -7.0f);
}

TEST_P(NormVectorsTest, StatsOfSums) {
  const auto sum = Numbers(1), squares = Numbers(2);
  for (bool counted : {false, true}) {
    std::vector<float> mean(n_ + 1, -7.0f), variance(n_ + 1, -7.0f);
    float count = -7.0f;
    const StatsOfSumsCall call{&sum[0],
                               &squares[0],
                               64.0f,
                               n_,
                               &mean[0],
                               &variance[0],
                               counted ? &count : nullptr};
    ASSERT_TRUE(Enqueue(call, *stream_, "op").ok());
    for (int c = 0; c < n_; ++c) {
      const functors::MeanVariance expected =
          functors::StatsOfSums(sum[c], squares[c], 64.0f);
      EXPECT_EQ(mean[c], expected.mean);
      EXPECT_EQ(variance[c], expected.variance);
    }
    EXPECT_EQ(mean[n_], -7.0f);
    EXPECT_EQ(variance[n_], -7.0f);
    EXPECT_EQ(count, counted ? 64.0f : -7.0f);
  }
}

INSTANTIATE_TEST_SUITE_P(Channels, NormVectorsTest,
                         ::testing::Values(1, 7, 256, 600));

}  // namespace
}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
