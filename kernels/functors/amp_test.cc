#include "kernels/functors/amp.h"

#include <cmath>

#include "gtest/gtest.h"

namespace halftone {
namespace functors {
namespace {

LossScalePolicy Policy() {
  return {/*incr_every=*/1000,
          /*decr_every=*/2,
          /*incr_ratio=*/2.0,
          /*decr_ratio=*/0.8,
          /*floor=*/1.0,
          /*ceiling=*/Infinity(),
          /*clamp=*/false};
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

// apex.amp: min(max_loss_scale, scale * 2).
TEST(UpdateLossScaleTest, ClampsToTheCeiling) {
  LossScalePolicy policy = Policy();
  policy.ceiling = 0x1p24;
  ExpectUpdate({0x1.8p23, 999, 0}, false, {0x1.8p23, 0, 0}, policy);
  policy.clamp = true;
  ExpectUpdate({0x1.8p23, 999, 0}, false, {0x1p24, 0, 0}, policy);
  ExpectUpdate({0x1p24, 999, 0}, false, {0x1p24, 0, 0}, policy);
  ExpectUpdate({0x1p127, 999, 0}, false, {0x1p24, 0, 0}, policy);
  policy.ceiling = Infinity();
  ExpectUpdate({0x1p127, 999, 0}, false, {0x1p127, 0, 0}, policy);
}

// Six overflows with 0.8, then six growths with 1.7, from 65536: what
// torch._amp_update_scale_ of PyTorch 2.11 gives.
TEST(UpdateLossScaleTest, ProductsAreMadeInDouble) {
  LossScalePolicy policy = Policy();
  policy.incr_every = policy.decr_every = 1;
  policy.incr_ratio = 1.7;
  LossScaleState state = {65536, 0, 0};
  const float expected[] = {52428.80078125, 41943.0390625,   33554.4296875,
                            26843.54296875, 21474.833984375, 17179.8671875,
                            29205.7734375,  49649.81640625,  84404.6875,
                            143487.96875,   243929.546875,   414680.21875};
  for (int i = 0; i < 12; ++i) {
    state = UpdateLossScale(state, i < 6, policy);
    EXPECT_EQ(state.scale, expected[i]) << i;
  }
}

// With an f32 ratio: what update_loss_scaling of Paddle 2.6.2 gives.
TEST(UpdateLossScaleTest, AnF32RatioGivesTheF32Product) {
  LossScalePolicy policy = Policy();
  policy.decr_every = 1;
  policy.decr_ratio = 0.8f;
  LossScaleState state = {32768, 0, 0};
  for (const float expected :
       {26214.4f, 20971.521f, 16777.217f, 13421.773f, 10737.419f, 8589.936f}) {
    state = UpdateLossScale(state, true, policy);
    EXPECT_EQ(state.scale, expected);
  }
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
