#include <cmath>
#include <string>

#include "gtest/gtest.h"
#include "passes/options/options.h"
#include "passes/options/options_testing.h"

namespace halftone {
namespace passes {
namespace {

TEST(LevelBundles, AreDefaults) {
  const Options o0 = MustResolve("");
  EXPECT_EQ(o0.strategy.amp().level(), "O0");
  EXPECT_FALSE(o0.strategy.amp().loss_scaling().use_dynamic_loss_scaling());
  EXPECT_EQ(o0.strategy.amp().loss_scaling().init_loss_scaling(), 1);
  EXPECT_FALSE(o0.strategy.has_optimizer());

  const Options o1 = MustResolve("amp { level: 'O1' }");
  EXPECT_EQ(o1.strategy.amp().dtype(), "fp16");
  EXPECT_EQ(o1.strategy.amp().precision_rule(), "all_low");
  EXPECT_TRUE(o1.strategy.amp().master_weights());
  EXPECT_TRUE(o1.strategy.amp().loss_scaling().use_dynamic_loss_scaling());
  EXPECT_EQ(o1.strategy.amp().loss_scaling().init_loss_scaling(), 32768);
  EXPECT_EQ(o1.strategy.amp().loss_scaling().incr_every_n_steps(), 1000);
  EXPECT_EQ(o1.strategy.amp().loss_scaling().incr_ratio(), 2);
  EXPECT_EQ(o1.strategy.amp().loss_scaling().decr_every_n_nan_or_inf(), 2);
  EXPECT_EQ(o1.strategy.amp().loss_scaling().decr_ratio(), 0.5);
  EXPECT_EQ(o1.strategy.amp().loss_scaling().min_loss_scaling(), 1);
  EXPECT_EQ(o1.strategy.amp().loss_scaling().max_loss_scaling(), 16777216);

  const Options bf16 = MustResolve("amp { level: 'O1' dtype: 'bf16' }");
  EXPECT_EQ(bf16.strategy.amp().dtype(), "bf16");
  EXPECT_FALSE(bf16.strategy.amp().loss_scaling().use_dynamic_loss_scaling());
  EXPECT_EQ(bf16.strategy.amp().loss_scaling().init_loss_scaling(), 1);

  EXPECT_TRUE(MustResolve("amp { level: 'O2' }")
                  .strategy.amp()
                  .loss_scaling()
                  .use_dynamic_loss_scaling());
  const Options o3 = MustResolve("amp { level: 'O3' }");
  EXPECT_FALSE(o3.strategy.amp().loss_scaling().use_dynamic_loss_scaling());
  EXPECT_EQ(o3.strategy.amp().loss_scaling().init_loss_scaling(), 1);
  EXPECT_FALSE(o3.strategy.amp().master_weights());
  EXPECT_FALSE(o3.strategy.amp().keep_batchnorm_fp32());
}

TEST(LevelBundles, SlotsInF32MayBeRoundedByFusionsUnlessForbidden) {
  const Options o1 = MustResolve("amp { level: 'O1' }");
  EXPECT_FALSE(o1.strategy.amp().strict_f32_slots());
  EXPECT_EQ(o1.origins.at("amp.strict_f32_slots"), "default");
  EXPECT_TRUE(MustResolve("amp { level: 'O1' strict_f32_slots: true }")
                  .strategy.amp()
                  .strict_f32_slots());
}

TEST(LevelBundles, EachPropertyIsOverridableAlone) {
  const Options o3 = MustResolve(
      "amp { level: 'O3' keep_batchnorm_fp32: true "
      "loss_scaling { use_dynamic_loss_scaling: true } }");
  EXPECT_TRUE(o3.strategy.amp().keep_batchnorm_fp32());
  EXPECT_FALSE(o3.strategy.amp().master_weights());
  EXPECT_TRUE(o3.strategy.amp().loss_scaling().use_dynamic_loss_scaling());
  EXPECT_EQ(o3.strategy.amp().loss_scaling().init_loss_scaling(), 32768);
  const Options constant = MustResolve(
      "amp { level: 'O1' loss_scaling { use_dynamic_loss_scaling: false } }");
  EXPECT_FALSE(
      constant.strategy.amp().loss_scaling().use_dynamic_loss_scaling());
  EXPECT_EQ(constant.strategy.amp().loss_scaling().init_loss_scaling(), 32768);
  const Options scaled =
      MustResolve("amp { level: 'O0' loss_scaling { init_loss_scaling: 8 } }");
  EXPECT_FALSE(scaled.strategy.amp().loss_scaling().use_dynamic_loss_scaling());
  EXPECT_EQ(scaled.strategy.amp().loss_scaling().init_loss_scaling(), 8);
}

TEST(LevelBundles, WhatDoesNotGoTogetherIsRefused) {
  ExpectError("amp { level: 'O1'\n master_weights: false }",
              "dir/s.pbtxt:2: amp.master_weights: false does not go with "
              "amp.level O1: parameters stay FP32 at O1");
  ExpectError("amp { level: 'O1' keep_batchnorm_fp32: false }",
              "amp.keep_batchnorm_fp32: false does not go with amp.level O1: "
              "batch norms keep scale, bias and statistics in FP32 at O1");
  // What says again what the level does, and every pair of the other levels.
  MustResolve("amp { level: 'O1' keep_batchnorm_fp32: true }");
  MustResolve("amp { level: 'O1' master_weights: true }");
  for (const char* level : {"O0", "O2", "O3"}) {
    for (const char* properties :
         {"master_weights: false", "master_weights: true",
          "keep_batchnorm_fp32: false", "keep_batchnorm_fp32: true"}) {
      MustResolve(std::string("amp { level: '") + level + "' " + properties +
                  " }");
    }
  }
}

TEST(LevelBundles, WordsAreRecognised) {
  for (const char* word : {"O1", "o1", "01"}) {
    const Options options =
        MustResolve(std::string("amp { level: '") + word + "' }");
    EXPECT_EQ(options.strategy.amp().level(), "O1");
    EXPECT_EQ(options.strategy.amp().level(), "O1");
  }
  for (const char* word : {"fp16", "f16", "float16"}) {
    const Options options =
        MustResolve(std::string("amp { dtype: '") + word + "' }");
    EXPECT_EQ(options.strategy.amp().dtype(), "fp16");
    EXPECT_EQ(options.strategy.amp().dtype(), "fp16");
  }
}

TEST(ScalerPresets, AreThoseOfTheOthers) {
  const Options paddle = MustResolve("amp { level: 'O1' scaler: 'paddle' }");
  EXPECT_EQ(paddle.strategy.amp().loss_scaling().decr_ratio(), 0.8);
  EXPECT_EQ(paddle.strategy.amp().loss_scaling().min_loss_scaling(), 1);
  EXPECT_TRUE(
      std::isinf(paddle.strategy.amp().loss_scaling().max_loss_scaling()));
  const Options apex = MustResolve("amp { level: 'O3' scaler: 'apex' }");
  EXPECT_TRUE(apex.strategy.amp().loss_scaling().use_dynamic_loss_scaling());
  EXPECT_EQ(apex.strategy.amp().loss_scaling().init_loss_scaling(), 65536);
  EXPECT_EQ(apex.strategy.amp().loss_scaling().incr_every_n_steps(), 2000);
  EXPECT_EQ(apex.strategy.amp().loss_scaling().decr_every_n_nan_or_inf(), 1);
  EXPECT_EQ(apex.strategy.amp().loss_scaling().min_loss_scaling(), 0);
  EXPECT_EQ(apex.strategy.amp().loss_scaling().max_loss_scaling(), 16777216);
  const Options torch = MustResolve(
      "amp { scaler: 'torch' loss_scaling { incr_every_n_steps: 7 } }");
  EXPECT_EQ(torch.strategy.amp().loss_scaling().min_loss_scaling(), 0);
  EXPECT_TRUE(
      std::isinf(torch.strategy.amp().loss_scaling().max_loss_scaling()));
  EXPECT_EQ(torch.strategy.amp().loss_scaling().incr_every_n_steps(), 7);
  EXPECT_EQ(torch.origins.at("amp.loss_scaling.init_loss_scaling"),
            "scaler torch");
  ExpectError("amp { scaler: 'troch' }",
              "dir/s.pbtxt:1: amp.scaler: expected paddle, apex or torch, "
              "found \"troch\"; nearest: torch");
}

// As in the originals: Apex takes the smaller of ceiling and initial scale,
// Paddle's floor of 1 holds from the first decrease on.
TEST(ScalerPresets, KeepTheirBoundsWhateverTheScale) {
  const Options apex = MustResolve(
      "amp { scaler: 'apex' loss_scaling { init_loss_scaling: 33554432 } }");
  EXPECT_EQ(apex.strategy.amp().loss_scaling().init_loss_scaling(), 16777216);
  EXPECT_EQ(apex.strategy.amp().loss_scaling().max_loss_scaling(), 16777216);
  EXPECT_EQ(MustResolve("amp { scaler: 'apex' loss_scaling { "
                        "max_loss_scaling: 1024 } }")
                .strategy.amp()
                .loss_scaling()
                .init_loss_scaling(),
            1024);
  const Options paddle = MustResolve(
      "amp { scaler: 'paddle' loss_scaling { init_loss_scaling: 0.25 } }");
  EXPECT_EQ(paddle.strategy.amp().loss_scaling().init_loss_scaling(), 0.25);
  EXPECT_EQ(paddle.strategy.amp().loss_scaling().min_loss_scaling(), 1);
  const Options large = MustResolve(
      "amp { scaler: 'paddle' loss_scaling { init_loss_scaling: 33554432 } }");
  EXPECT_EQ(large.strategy.amp().loss_scaling().init_loss_scaling(), 33554432);
}

TEST(LossScaling, BoundsMakeRoomForTheScale) {
  EXPECT_EQ(MustResolve("amp { level: 'O1' loss_scaling { init_loss_scaling: "
                        "0.25 } }")
                .strategy.amp()
                .loss_scaling()
                .min_loss_scaling(),
            0.25);
  EXPECT_EQ(MustResolve("amp { level: 'O1' loss_scaling { init_loss_scaling: "
                        "33554432 } }")
                .strategy.amp()
                .loss_scaling()
                .max_loss_scaling(),
            33554432);
}

}  // namespace
}  // namespace passes
}  // namespace halftone
