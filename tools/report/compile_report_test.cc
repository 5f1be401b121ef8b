#include "tools/report/compile_report.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tools/report/testing/test_models.h"

namespace halftone {
namespace tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(CompileReport, TheWholeScreen) {
  CompiledModel model = CompileConvnet({});
  model.fingerprint = "3f9a1c7700000000";
  model.passes.Clear();
  for (int i = 0; i < 16; ++i) model.passes.Add()->set_ms(0.25);
  EXPECT_EQ(
      CompileText(FixedFacts(model), "mnist.htc", 41000),
      "precision     O1 fp16, rule all_low: 12 of 15 ops f16; f32: ce, loss "
      "(black list), x (no float input)\n"
      "casts         15 inserted = 12 replaced by f16 cells beside the FP32 "
      "copies + 3 folded into kernels; 0 run on their own\n"
      "loss scaling  dynamic, 32768; x2 after 1,000 clean steps, x0.5 after 2 "
      "bad in a row, within 1 .. 16777216\n"
      "gradients     10 (29,034 values) in 2 all-reduces: f16 57,876 B, f32 "
      "384 B; + 1 totals, + 4 for sync_batch_norm; any number of ranks\n"
      "update        momentum 0.9, lr 0.01 x 64/64 = 0.01 constant; no weight "
      "decay on bn*\n"
      "memory        4.8 MiB at 64 samples on one rank of 1 thread, 284 KiB of "
      "it state; other splits: halftone plan\n"
      "note D8       conv1 (1 channel), fc (10 outputs): not multiples of 8, "
      "tensor cores idle there (GPU targets)  halftone explain D8\n"
      "mnist.htc     3f9a1c77, 40.0 KiB, cpu kernels, 16 passes in 4 ms  "
      "halftone inspect mnist.htc\n");
}

TEST(CompileReport, PassesThatDidNotRunAgainTookNoTime) {
  CompiledModel model = CompileConvnet({});
  for (proto::PassRow& pass : model.passes) pass.clear_ms();
  EXPECT_THAT(CompileText(FixedFacts(model), "a.htc", 9),
              HasSubstr(" passes, which ran before  halftone inspect a.htc"));
}

TEST(CompileReport, WithoutAFileItsLineIsMissing) {
  EXPECT_THAT(CompileText(FixedFacts(Convnet()), "", 0),
              Not(HasSubstr("halftone inspect")));
}

TEST(CompileReport, AtO0AllIsF32) {
  const CompiledModel model = CompileConvnet({{"amp.level", "O0", "--level"}});
  const std::string text = CompileText(FixedFacts(model), "", 0);
  EXPECT_THAT(text, HasSubstr("precision     O0: all 15 ops f32\n"));
  EXPECT_THAT(text, HasSubstr("casts         none\n"));
}

TEST(CompileReport, ConstantScaling) {
  const CompiledModel model = CompileConvnet(
      {{"amp.loss_scaling.use_dynamic_loss_scaling", "false", "--set"},
       {"amp.loss_scaling.init_loss_scaling", "128", "--loss-scale"}});
  EXPECT_THAT(CompileText(FixedFacts(model), "", 0),
              HasSubstr("loss scaling  constant, 128\n"));
}

proto::Strategy StrategyWith(const std::string& method) {
  proto::Strategy strategy;
  proto::Optimizer& optimizer = *strategy.mutable_optimizer();
  if (method == "adamw") {
    optimizer.mutable_adamw()->set_beta1(0.9);
    optimizer.mutable_adamw()->set_beta2(0.999);
    optimizer.mutable_adamw()->set_epsilon(1e-8);
    optimizer.mutable_adamw()->set_weight_decay(0.01);
  } else if (method == "nesterov") {
    optimizer.mutable_momentum()->set_momentum(0.9);
    optimizer.mutable_momentum()->set_use_nesterov(true);
  } else {
    optimizer.mutable_sgd();
  }
  strategy.mutable_lr()->set_base(0.5);
  return strategy;
}

TEST(UpdateText, NamesMethodRateDecayAndClip) {
  EXPECT_EQ(UpdateText(StrategyWith("sgd")), "sgd, lr 0.5 constant");
  EXPECT_EQ(UpdateText(StrategyWith("nesterov")),
            "momentum 0.9 (Nesterov), lr 0.5 constant");
  EXPECT_EQ(UpdateText(StrategyWith("adamw")),
            "adamw betas 0.9 0.999 epsilon 1e-08, lr 0.5 constant; weight "
            "decay 0.01");
  proto::Strategy strategy = StrategyWith("sgd");
  strategy.mutable_lr()->set_base_batch(32);
  strategy.mutable_train()->set_batch_size(64);
  strategy.mutable_lr()->mutable_cosine();
  strategy.mutable_lr()->set_warmup_steps(1000);
  proto::Group& group = *strategy.mutable_optimizer()->add_group();
  group.set_match("head/*");
  group.set_lr_scale(10);
  strategy.mutable_optimizer()->mutable_clip()->set_global_norm(1);
  EXPECT_EQ(UpdateText(strategy),
            "sgd, lr 0.5 x 64/32 = 1 cosine after 1,000 warm-up steps; lr x "
            "10 on head/*; gradients clipped to norm 1");
  proto::Strategy step = StrategyWith("sgd");
  step.mutable_lr()->mutable_step()->set_step_size(30);
  EXPECT_EQ(UpdateText(step), "sgd, lr 0.5 step x0.1 every 30 epochs");
  step.mutable_lr()->mutable_multi_step()->add_milestones(30);
  step.mutable_lr()->mutable_multi_step()->add_milestones(60);
  step.mutable_lr()->mutable_multi_step()->set_every("steps");
  EXPECT_EQ(UpdateText(step), "sgd, lr 0.5 multi_step x0.1 at 30, 60 steps");
  step.mutable_lr()->mutable_one_cycle()->set_factor(4);
  EXPECT_EQ(UpdateText(step), "sgd, lr 0.5 one_cycle to base x 4");
  // Where base has no effect, the rate that they begin with.
  step.mutable_lr()->set_base_batch(32);
  step.mutable_train()->set_batch_size(64);
  step.mutable_lr()->mutable_one_cycle()->clear_factor();
  step.mutable_lr()->mutable_one_cycle()->set_max_lr(2);
  EXPECT_EQ(UpdateText(step), "sgd, lr 0.08 one_cycle to 2");
  step.mutable_lr()->mutable_cyclic()->set_base_lr(0.25);
  step.mutable_lr()->mutable_cyclic()->set_max_lr(2);
  EXPECT_EQ(UpdateText(step), "sgd, lr 0.25 cyclic to 2 in 2000 steps");
  proto::Strategy warm = StrategyWith("sgd");
  warm.mutable_lr()->set_warmup_epochs(1);
  EXPECT_EQ(UpdateText(warm), "sgd, lr 0.5 constant after 1 warm-up epoch");
  warm.mutable_lr()->set_warmup_epochs(0.3);
  EXPECT_EQ(UpdateText(warm),
            "sgd, lr 0.5 constant after 0.3 warm-up epochs (whole steps)");
}

TEST(UpdateText, MethodsClipsAndAverages) {
  proto::Strategy strategy = StrategyWith("sgd");
  proto::Optimizer& optimizer = *strategy.mutable_optimizer();
  optimizer.mutable_rmsprop()->set_centered(true);
  optimizer.mutable_clip()->set_norm(0.5);
  optimizer.mutable_ema()->set_decay(0.99);
  EXPECT_EQ(UpdateText(strategy),
            "rmsprop alpha 0.99 epsilon 1e-08 momentum 0 centered, lr 0.5 "
            "constant; each gradient clipped to norm 0.5; evaluated by "
            "averages, decay 0.99");
  optimizer.mutable_lamb()->set_trust_ratio(false);
  optimizer.mutable_clip()->clear_norm();
  optimizer.mutable_clip()->set_value(2);
  optimizer.mutable_ema()->set_warmup(true);
  proto::Group& group = *optimizer.add_group();
  group.set_match("bn*");
  group.set_trust_ratio(false);
  group.set_beta1(0.5);
  EXPECT_EQ(UpdateText(strategy),
            "lamb beta1 0.9 beta2 0.999 epsilon 1e-06 no trust_ratio, lr 0.5 "
            "constant; weight decay 0.01; no trust_ratio, beta1 0.5 on bn*; "
            "gradients clipped to +-2; evaluated by averages, decay 0.99 "
            "after warm-up");
}

TEST(CompileJson, HasTotalsPassesAndNotes) {
  const ModelFacts facts = FixedFacts(Convnet());
  const auto json =
      nlohmann::json::parse(CompileJson(facts, "mnist.htc", 40000));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["path"], "mnist.htc");
  EXPECT_EQ(json["bytes"], 40000);
  EXPECT_EQ(json["totals"]["casts_down"], 8);
  EXPECT_EQ(json["totals"]["peak_bytes"], 5000000);
  EXPECT_EQ(json["passes"].size(), size_t(Convnet().passes.size()));
  EXPECT_EQ(json["notes"][0]["ops"], (std::vector<std::string>{"conv1", "fc"}));
}

}  // namespace
}  // namespace tools
}  // namespace halftone
