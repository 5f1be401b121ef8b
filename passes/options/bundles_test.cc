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
  EXPECT_EQ(o0.amp.level, Level::kO0);
  EXPECT_FALSE(o0.scaling.dynamic);
  EXPECT_EQ(o0.scaling.init, 1);
  EXPECT_FALSE(o0.has_optimizer);

  const Options o1 = MustResolve("amp { level: 'O1' }");
  EXPECT_EQ(o1.amp.low, DType::kF16);
  EXPECT_EQ(o1.amp.rule, PrecisionRule::kAllLow);
  EXPECT_TRUE(o1.amp.master_weights);
  EXPECT_TRUE(o1.scaling.dynamic);
  EXPECT_EQ(o1.scaling.init, 32768);
  EXPECT_EQ(o1.scaling.incr_every, 1000);
  EXPECT_EQ(o1.scaling.incr_ratio, 2);
  EXPECT_EQ(o1.scaling.decr_every, 2);
  EXPECT_EQ(o1.scaling.decr_ratio, 0.5);
  EXPECT_EQ(o1.scaling.floor, 1);
  EXPECT_EQ(o1.scaling.ceiling, 16777216);

  const Options bf16 = MustResolve("amp { level: 'O1' dtype: 'bf16' }");
  EXPECT_EQ(bf16.amp.low, DType::kBF16);
  EXPECT_FALSE(bf16.scaling.dynamic);
  EXPECT_EQ(bf16.scaling.init, 1);

  EXPECT_TRUE(MustResolve("amp { level: 'O2' }").scaling.dynamic);
  const Options o3 = MustResolve("amp { level: 'O3' }");
  EXPECT_FALSE(o3.scaling.dynamic);
  EXPECT_EQ(o3.scaling.init, 1);
  EXPECT_FALSE(o3.amp.master_weights);
  EXPECT_FALSE(o3.amp.keep_batchnorm_fp32);
}

TEST(LevelBundles, SlotsInF32MayBeRoundedByFusionsUnlessForbidden) {
  const Options o1 = MustResolve("amp { level: 'O1' }");
  EXPECT_FALSE(o1.amp.strict_f32_slots);
  EXPECT_EQ(o1.origins.at("amp.strict_f32_slots"), "default");
  EXPECT_TRUE(MustResolve("amp { level: 'O1' strict_f32_slots: true }")
                  .amp.strict_f32_slots);
}

TEST(LevelBundles, EachPropertyIsOverridableAlone) {
  const Options o3 = MustResolve(
      "amp { level: 'O3' keep_batchnorm_fp32: true "
      "loss_scaling { use_dynamic_loss_scaling: true } }");
  EXPECT_TRUE(o3.amp.keep_batchnorm_fp32);
  EXPECT_FALSE(o3.amp.master_weights);
  EXPECT_TRUE(o3.scaling.dynamic);
  EXPECT_EQ(o3.scaling.init, 32768);
  const Options constant = MustResolve(
      "amp { level: 'O1' loss_scaling { use_dynamic_loss_scaling: false } }");
  EXPECT_FALSE(constant.scaling.dynamic);
  EXPECT_EQ(constant.scaling.init, 32768);
  const Options scaled =
      MustResolve("amp { level: 'O0' loss_scaling { init_loss_scaling: 8 } }");
  EXPECT_FALSE(scaled.scaling.dynamic);
  EXPECT_EQ(scaled.scaling.init, 8);
}

TEST(LevelBundles, WordsAreRecognised) {
  for (const char* word : {"O1", "o1", "01"}) {
    const Options options =
        MustResolve(std::string("amp { level: '") + word + "' }");
    EXPECT_EQ(options.amp.level, Level::kO1);
    EXPECT_EQ(options.resolved.amp().level(), "O1");
  }
  for (const char* word : {"fp16", "f16", "float16"}) {
    const Options options =
        MustResolve(std::string("amp { dtype: '") + word + "' }");
    EXPECT_EQ(options.amp.low, DType::kF16);
    EXPECT_EQ(options.resolved.amp().dtype(), "fp16");
  }
}

TEST(ScalerPresets, AreThoseOfTheOthers) {
  const Options paddle = MustResolve("amp { level: 'O1' scaler: 'paddle' }");
  EXPECT_EQ(paddle.scaling.decr_ratio, 0.8f);  // a float attribute there
  EXPECT_EQ(paddle.resolved.amp().loss_scaling().decr_ratio(), 0.8);
  EXPECT_EQ(paddle.scaling.floor, 1);
  EXPECT_TRUE(std::isinf(paddle.scaling.ceiling));
  EXPECT_FALSE(paddle.scaling.clamp);
  const Options apex = MustResolve("amp { level: 'O3' scaler: 'apex' }");
  EXPECT_TRUE(apex.scaling.dynamic);
  EXPECT_EQ(apex.scaling.init, 65536);
  EXPECT_EQ(apex.scaling.incr_every, 2000);
  EXPECT_EQ(apex.scaling.decr_every, 1);
  EXPECT_EQ(apex.scaling.floor, 0);
  EXPECT_EQ(apex.scaling.ceiling, 16777216);
  EXPECT_TRUE(apex.scaling.clamp);
  const Options torch = MustResolve(
      "amp { scaler: 'torch' loss_scaling { incr_every_n_steps: 7 } }");
  EXPECT_EQ(torch.scaling.floor, 0);
  EXPECT_TRUE(std::isinf(torch.scaling.ceiling));
  EXPECT_EQ(torch.scaling.incr_every, 7);
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
  EXPECT_EQ(apex.scaling.init, 16777216);
  EXPECT_EQ(apex.scaling.ceiling, 16777216);
  EXPECT_EQ(MustResolve("amp { scaler: 'apex' loss_scaling { "
                        "max_loss_scaling: 1024 } }")
                .scaling.init,
            1024);
  const Options paddle = MustResolve(
      "amp { scaler: 'paddle' loss_scaling { init_loss_scaling: 0.25 } }");
  EXPECT_EQ(paddle.scaling.init, 0.25);
  EXPECT_EQ(paddle.scaling.floor, 1);
  const Options large = MustResolve(
      "amp { scaler: 'paddle' loss_scaling { init_loss_scaling: 33554432 } }");
  EXPECT_EQ(large.scaling.init, 33554432);
}

TEST(LossScaling, BoundsMakeRoomForTheScale) {
  EXPECT_EQ(MustResolve("amp { level: 'O1' loss_scaling { init_loss_scaling: "
                        "0.25 } }")
                .scaling.floor,
            0.25);
  EXPECT_EQ(MustResolve("amp { level: 'O1' loss_scaling { init_loss_scaling: "
                        "33554432 } }")
                .scaling.ceiling,
            33554432);
}

}  // namespace
}  // namespace passes
}  // namespace halftone
