#include "kernels/functors/amp.h"

#include <cmath>

#include "gtest/gtest.h"

namespace halftone {
namespace functors {
namespace {

LossScalePolicy Policy() {
  return {/*incr_every=*/1000,   /*decr_every=*/2,
          /*incr_ratio=*/2.0f,
          /*decr_ratio=*/0.8f,   /*floor=*/1.0f,
          /*ceiling=*/Infinity()};
}

void ExpectUpdate(LossScaleState before, bool found_inf, LossScaleState after,
                  const LossScalePolicy& policy = Policy()) {
  const LossScaleState found = UpdateLossScale(before, found_inf, policy);
  EXPECT_EQ(found.scale, after.scale);
  EXPECT_EQ(found.good, after.good);
  EXPECT_EQ(found.bad, after.bad);
}

// The published vectors of update_loss_scaling with these settings.
TEST(UpdateLossScaleTest, PublishedVectors) {
  ExpectUpdate({2048, 999, 1}, false, {4096, 0, 0});
  ExpectUpdate({2048, 999, 1}, true, {1638.4f, 0, 0});
  ExpectUpdate({2048, 10, 0}, true, {2048, 0, 1});
  ExpectUpdate({1.1f, 0, 1}, true, {1, 0, 0});
  ExpectUpdate({0x1p127f, 999, 0}, false, {0x1p127f, 0, 0});
}

TEST(UpdateLossScaleTest, CountsCleanSteps) {
  ExpectUpdate({2048, 5, 1}, false, {2048, 6, 0});
}

TEST(UpdateLossScaleTest, KeepsTheScaleAtTheCeiling) {
  LossScalePolicy policy = Policy();
  policy.ceiling = 4096;
  ExpectUpdate({2048, 999, 0}, false, {4096, 0, 0}, policy);
  ExpectUpdate({4096, 999, 0}, false, {4096, 0, 0}, policy);
}

TEST(UpdateLossScaleTest, WithoutAFloorItsInverseStaysFinite) {
  LossScalePolicy policy = Policy();
  policy.decr_every = 1;
  policy.decr_ratio = 0.5f;
  policy.floor = 0;
  LossScaleState state = {65536, 0, 0};
  for (int i = 0; i < 200; ++i) state = UpdateLossScale(state, true, policy);
  EXPECT_EQ(state.scale, SmallestLossScale());
  // 5 samples on 3 ranks: 2 2 1.
  EXPECT_TRUE(IsFinite(GradientInvScale(state.scale, 0.25f, 5, 2)));
  state.good = policy.incr_every - 1;
  ExpectUpdate(state, false, {2 * SmallestLossScale(), 0, 0}, policy);
}

TEST(UpdateLossScaleTest, RatiosOfOneOnlyCount) {
  LossScalePolicy policy = Policy();
  policy.incr_ratio = policy.decr_ratio = 1;
  ExpectUpdate({128, 999, 0}, false, {128, 0, 0}, policy);
  ExpectUpdate({128, 0, 1}, true, {128, 0, 0}, policy);
}

TEST(GradientScaleTest, SeedAndInverse) {
  EXPECT_EQ(GradientSeed(1638.4f, 7, 7), 1638.4f);
  EXPECT_EQ(GradientSeed(1024, 15, 16), 960);
  EXPECT_EQ(GradientSeed(1024, 0, 0), 0);
  // 31 samples on two ranks, 16 and 15.
  EXPECT_EQ(GradientInvScale(1024, 0.5f, 31, 16), 16.0f / (512 * 31));
  EXPECT_EQ(GradientInvScale(1024, 0.5f, 0, 0), 0);
}

TEST(ClipFactorTest, LeavesSmallAndBadNormsAlone) {
  EXPECT_EQ(ClipFactor(0.5f, 1), 1);
  EXPECT_EQ(ClipFactor(4, 1), 1.0f / (4 + 1e-6f));
  EXPECT_EQ(ClipFactor(Infinity(), 1), 1);
  EXPECT_EQ(ClipFactor(QuietNaN(), 1), 1);
  EXPECT_EQ(ClipFactor(0, 0), 0);
}

}  // namespace
}  // namespace functors
}  // namespace halftone
