#include "passes/options/options.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"

namespace halftone {
namespace passes {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

absl::StatusOr<Options> Resolve(const std::string& content,
                                const std::vector<Override>& overrides = {},
                                const std::string& file = "dir/s.pbtxt") {
  HT_ASSIGN_OR_RETURN(const StrategyFile strategy,
                      ParseStrategy(content, file));
  return ResolveOptions(strategy, overrides);
}

Options MustResolve(const std::string& content,
                    const std::vector<Override>& overrides = {}) {
  absl::StatusOr<Options> options = Resolve(content, overrides);
  EXPECT_TRUE(options.ok()) << options.status();
  return options.ok() ? *std::move(options) : Options();
}

void ExpectError(const std::string& content, const std::string& message,
                 ExitCode code = ExitCode::kModel,
                 const std::vector<Override>& overrides = {}) {
  SCOPED_TRACE(content);
  const absl::Status status = Resolve(content, overrides).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  EXPECT_EQ(ExitCodeOf(status), code);
}

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
  EXPECT_EQ(paddle.scaling.decr_ratio, 0.8);
  const Options apex = MustResolve("amp { level: 'O3' scaler: 'apex' }");
  EXPECT_TRUE(apex.scaling.dynamic);
  EXPECT_EQ(apex.scaling.init, 65536);
  EXPECT_EQ(apex.scaling.incr_every, 2000);
  EXPECT_EQ(apex.scaling.decr_every, 1);
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

TEST(LossScaling, RefusesWhatNoScaleCanBe) {
  const auto with = [](const std::string& fields) {
    return "amp {\n level: 'O1'\n loss_scaling {\n" + fields + "} }";
  };
  ExpectError(with("init_loss_scaling: 0"),
              "dir/s.pbtxt:4: amp.loss_scaling.init_loss_scaling: expected a "
              "finite number above 0, found 0");
  ExpectError(with("init_loss_scaling: -2"), "found -2");
  ExpectError(with("init_loss_scaling: nan"), "found nan");
  ExpectError(with("init_loss_scaling: inf"), "found inf");
  ExpectError(with("init_loss_scaling: 1e300"), "init_loss_scaling");
  ExpectError(with("incr_every_n_steps: 0"),
              "amp.loss_scaling.incr_every_n_steps: expected a whole number "
              "above 0, found 0");
  ExpectError(with("decr_every_n_nan_or_inf: -1"), "found -1");
  ExpectError(with("incr_ratio: 0.5"), "1 or above, found 0.5");
  ExpectError(with("incr_ratio: inf"), "incr_ratio");
  ExpectError(with("decr_ratio: 0"), "above 0 and at most 1, found 0");
  ExpectError(with("decr_ratio: 1.5"), "found 1.5");
  ExpectError(with("decr_ratio: nan"), "found nan");
  ExpectError(with("min_loss_scaling: -1"), "min_loss_scaling");
  ExpectError(with("max_loss_scaling: -1"), "max_loss_scaling");
  ExpectError(with("init_loss_scaling: 4 min_loss_scaling: 8"),
              "at least min_loss_scaling, 8, found 4");
  ExpectError(with("init_loss_scaling: 16 max_loss_scaling: 8"),
              "at most max_loss_scaling, 8, found 16");
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

TEST(UserLists, UnknownOpsGetTheNearest) {
  ExpectError("amp {\n custom_black_list: ['mean', 'sofmax'] }",
              "dir/s.pbtxt:2: amp.custom_black_list: no op is called "
              "\"sofmax\"; nearest: softmax (all: halftone ops)");
  ExpectError("", "--black: amp.custom_black_list: no op is called \"sofmax\"",
              ExitCode::kUsage,
              {{"amp.custom_black_list", "sofmax", "--black"}});
}

TEST(UserLists, EachMemberHasItsLine) {
  ExpectError("amp {\n custom_black_list: 'mean'\n custom_black_list: 'x' }",
              "dir/s.pbtxt:3: amp.custom_black_list: no op is called \"x\"");
}

TEST(UserLists, AliasesAndOverridesAdd) {
  const Options options =
      MustResolve("amp { level: 'O1' custom_white_list: 'matmul_v2' }",
                  {{"amp.custom_white_list", "softmax", "--white"}});
  EXPECT_THAT(options.amp.white_ops, ElementsAre("matmul", "softmax"));
}

TEST(UserLists, AnOpInBothIsRefused) {
  ExpectError(
      "amp {\n custom_white_list: 'matmul_v2'\n"
      " custom_black_list: ['mean',\n 'matmul'] }",
      "dir/s.pbtxt:3: amp.custom_black_list: matmul is in "
      "custom_white_list, too (dir/s.pbtxt:2)");
  ExpectError("amp {\n custom_black_list: 'mean' }",
              "is in custom_white_list, too (--white)", ExitCode::kModel,
              {{"amp.custom_white_list", "mean", "--white"}});
}

TEST(OpListsTest, ComeFromAFileBesideTheStrategy) {
  const std::string dir = testing::TempDir();
  ASSERT_TRUE(WriteFileAtomically(
                  dir + "/lists.pbtxt",
                  "op_lists { white: 'conv2d' black: 'exp' gray: 'no_such_op' "
                  "clear: 'reshape' unlisted: 'gray' }")
                  .ok());
  const auto options = Resolve("amp { level: 'O1' op_lists: 'lists.pbtxt' }",
                               {}, dir + "/s.pbtxt");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->amp.op_lists.given);
  EXPECT_THAT(options->amp.op_lists.white, ElementsAre("conv2d"));
  EXPECT_THAT(options->amp.op_lists.gray, ElementsAre("no_such_op"));
  EXPECT_EQ(options->amp.op_lists.unlisted, AmpClass::kGray);
  EXPECT_TRUE(options->amp.op_lists.unlisted_written);
  EXPECT_EQ(options->resolved_op_lists.black(0), "exp");
}

TEST(OpListsTest, PaddleIsBuiltIn) {
  const Options o1 = MustResolve("amp { level: 'O1' op_lists: 'paddle' }");
  EXPECT_THAT(o1.amp.op_lists.white, Contains("matmul_v2"));
  EXPECT_THAT(o1.amp.op_lists.black, Contains("reduce_mean"));
  EXPECT_THAT(o1.amp.op_lists.gray, Contains("reshape2"));
  EXPECT_EQ(o1.amp.op_lists.unlisted, AmpClass::kBlack);
  EXPECT_EQ(MustResolve("amp { level: 'O2' op_lists: 'paddle' }")
                .amp.op_lists.unlisted,
            AmpClass::kGray);
}

TEST(OpListsTest, ErrorsNameTheField) {
  ExpectError("amp {\n op_lists: 'missing.pbtxt' }",
              "dir/s.pbtxt:2: amp.op_lists: expected \"paddle\" or a file that "
              "can be read, found dir/missing.pbtxt");
  const std::string dir = testing::TempDir();
  ASSERT_TRUE(
      WriteFileAtomically(dir + "/bad.pbtxt", "op_lists { unlisted: 'PINK' }")
          .ok());
  const auto options =
      Resolve("amp { op_lists: 'bad.pbtxt' }", {}, dir + "/s.pbtxt");
  EXPECT_THAT(std::string(options.status().message()),
              HasSubstr("expected BLACK, GRAY or CLEAR, found \"PINK\""));
}

TEST(StrategyChecks, NameLineFieldAndRange) {
  ExpectError("amp {\n\n level: 'O7' }",
              "dir/s.pbtxt:3: amp.level: expected O0, O1, O2 or O3, found "
              "\"O7\"");
  ExpectError("amp { dtype: 'f32' }",
              "amp.dtype: expected fp16 or bf16, found \"f32\"");
  ExpectError("amp { precision_rule: 'all_lo' }",
              "expected all_low or any_low, found \"all_lo\"; nearest: "
              "all_low");
  ExpectError("train { tail: 'pat' }",
              "train.tail: expected exact or pad or drop, found \"pat\"; "
              "nearest: pad");
  ExpectError("dist { gradient_scale: 'before' }", "expected pre or post");
  ExpectError("dist { fuse_grad_size_in_MB: 0 }",
              "fuse_all_reduce_ops: false switches fusing off");
  ExpectError("dist { first_bucket_size_in_MB: -1 }",
              "dist.first_bucket_size_in_MB");
  ExpectError("train { batch_size: 0 }",
              "train.batch_size: expected a whole number above 0, found 0");
  ExpectError("train { batch_size: 8 batch_size_per_rank: 8 }", "choose one");
  ExpectError("train { epochs: -1 }", "train.epochs");
  ExpectError("train { stop_rule { skipped_in_a_row: 0 } }",
              "train.stop_rule.skipped_in_a_row");
  ExpectError("lr { base: -0.1 }", "lr.base: expected a finite number");
  ExpectError("lr { base_batch: 0 }", "lr.base_batch");
  ExpectError("lr { warmup_steps: 5 warmup_epochs: 1 }", "choose one");
  ExpectError("lr { cosine { min_ratio: 2 } }", "lr.cosine.min_ratio");
  ExpectError("lr { piecewise { boundary: 0.5 factor: 1 } }",
              "one factor more than boundaries");
  ExpectError("lr { piecewise { boundary: [0.5, 0.25] factor: [1, 1, 1] } }",
              "rising fractions of the run between 0 and 1, found 0.25");
}

TEST(StrategyChecks, Optimizers) {
  ExpectError("optimizer {\n}", "dir/s.pbtxt");
  ExpectError("optimizer { }", "names no method; one of: sgd momentum adam");
  ExpectError("optimizer { momentum { momentum: 1 } }",
              "optimizer.momentum.momentum");
  ExpectError("optimizer { adamw { beta2: 1.5 } }", "optimizer.adamw.beta2");
  ExpectError("optimizer { adam { epsilon: 0 } }", "optimizer.adam.epsilon");
  ExpectError("optimizer { sgd { weight_decay: -1 } }",
              "optimizer.sgd.weight_decay");
  ExpectError("optimizer { sgd {} clip { global_norm: 0 } }",
              "optimizer.clip.global_norm");
  ExpectError("optimizer { sgd {}\n group { weight_decay: 0 } }",
              "dir/s.pbtxt:2: optimizer.group: match is missing");
  const Options options = MustResolve("optimizer { adam { } }");
  EXPECT_TRUE(options.has_optimizer);
  EXPECT_EQ(options.optimizer.adam().beta2(), 0.999);
}

TEST(Overrides, ErrorsAreUsage) {
  ExpectError("",
              "--set: a strategy has no field \"amp.levl\"; nearest: "
              "amp.level",
              ExitCode::kUsage, {{"amp.levl", "O1", "--set"}});
  ExpectError("",
              "--epochs: train.epochs: expected a whole number, found "
              "\"many\"",
              ExitCode::kUsage, {{"train.epochs", "many", "--epochs"}});
  ExpectError("", "--set: dist.sync_batch_norm: expected true or false",
              ExitCode::kUsage, {{"dist.sync_batch_norm", "maybe", "--set"}});
  ExpectError("", "--lr: lr.base: expected a number", ExitCode::kUsage,
              {{"lr.base", "fast", "--lr"}});
  ExpectError("", "--level: amp.level: expected O0", ExitCode::kUsage,
              {{"amp.level", "O9", "--level"}});
  ExpectError("", "--set: optimizer", ExitCode::kUsage,
              {{"optimizer", "momentum { mass: 1 }", "--set"}});
}

TEST(Overrides, SetEveryKindOfField) {
  const Options options =
      MustResolve("amp { level: 'O1' } lr { base: 1 }",
                  {{"amp.level", "O2", "--level"},
                   {"lr.base", "0.5", "--lr"},
                   {"train.batch_size", "128", "--batch-size"},
                   {"dist.sync_batch_norm", "true", "--set"},
                   {"amp.custom_black_varnames", "a*", "--black-var"},
                   {"amp.custom_black_varnames", "b*", "--black-var"},
                   {"optimizer.momentum.momentum", "0.8", "--set"},
                   {"optimizer.group", "match: 'bn*' weight_decay: 0", "--set"},
                   {"amp.loss_scaling.max_loss_scaling", "inf", "--set"}});
  EXPECT_EQ(options.amp.level, Level::kO2);
  EXPECT_EQ(options.lr.base(), 0.5);
  EXPECT_EQ(options.resolved.train().batch_size(), 128);
  EXPECT_TRUE(options.sync_batch_norm);
  EXPECT_THAT(options.amp.black_vars, ElementsAre("a*", "b*"));
  EXPECT_EQ(options.optimizer.momentum().momentum(), 0.8);
  EXPECT_EQ(options.optimizer.group(0).match(), "bn*");
  EXPECT_TRUE(std::isinf(options.scaling.ceiling));
  EXPECT_EQ(options.origins.at("amp.level"), "--level");
}

TEST(Origins, EveryFieldHasOne) {
  const Options options = MustResolve(
      "amp {\n level: 'O1'\n dtype: 'fp16' }\noptimizer { sgd { } }");
  EXPECT_EQ(options.origins.at("amp.level"), "dir/s.pbtxt:2");
  EXPECT_EQ(options.origins.at("amp.master_weights"), "level O1");
  EXPECT_EQ(options.origins.at("train.tail"), "default");
  EXPECT_EQ(options.origins.at("optimizer.sgd.weight_decay"), "default");
  EXPECT_EQ(options.resolved.train().tail(), "exact");
  EXPECT_TRUE(options.resolved.lr().constant());
  EXPECT_EQ(OriginOf(options, "amp.dtype"), "dir/s.pbtxt:3: amp.dtype");
  EXPECT_EQ(ExitCodeOf(FieldError(options, "amp.level", "no")),
            ExitCode::kModel);
}

TEST(RestoreStrategyTest, LevelTakesItsBundleAlong) {
  const Options first = MustResolve(
      "amp {\n level: 'O1' loss_scaling { decr_ratio: 0.8 } }\n"
      "optimizer { momentum { } }\ntrain { epochs: 3 }");
  const StrategyFile restored =
      RestoreStrategy(first.resolved, first.origins, first.resolved_op_lists);
  const auto same = ResolveOptions(restored, {});
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->resolved.DebugString(), first.resolved.DebugString());
  EXPECT_EQ(same->origins, first.origins);

  const auto o3 = ResolveOptions(restored, {{"amp.level", "O3", "--level"}});
  ASSERT_TRUE(o3.ok()) << o3.status();
  EXPECT_FALSE(o3->amp.master_weights);
  EXPECT_FALSE(o3->scaling.dynamic);
  EXPECT_EQ(o3->scaling.decr_ratio, 0.8);
  EXPECT_EQ(o3->origins.at("amp.loss_scaling.decr_ratio"), "dir/s.pbtxt:2");
  EXPECT_EQ(o3->resolved.train().epochs(), 3);
}

TEST(RestoreStrategyTest, KeepsListsWithoutTheirFile) {
  const std::string dir = testing::TempDir();
  const std::string lists = dir + "/gone.pbtxt";
  ASSERT_TRUE(WriteFileAtomically(lists, "op_lists { white: 'exp' }").ok());
  const auto first =
      Resolve("amp { op_lists: 'gone.pbtxt' }", {}, dir + "/s.pbtxt");
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(std::remove(lists.c_str()), 0);
  const auto again =
      ResolveOptions(RestoreStrategy(first->resolved, first->origins,
                                     first->resolved_op_lists),
                     {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(again->amp.op_lists.white, ElementsAre("exp"));
}

TEST(ReadStrategyTest, ErrorsNameFileLineAndNearestField) {
  const absl::Status unknown =
      ParseStrategy("amp {\n levl: 'O1' }", "s.pbtxt").status();
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("s.pbtxt:2"));
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("level"));
  EXPECT_EQ(ExitCodeOf(unknown), ExitCode::kModel);
  EXPECT_FALSE(ReadStrategy("no/such/file.pbtxt").ok());
}

TEST(StrategyPathsTest, AreLeaves) {
  const std::vector<std::string> paths = StrategyPaths();
  EXPECT_THAT(paths, Contains("amp.loss_scaling.incr_ratio"));
  EXPECT_THAT(paths, Contains("optimizer.group"));
  EXPECT_THAT(paths, Not(Contains("amp")));
  EXPECT_TRUE(LeavesGraphAlone("train.epochs"));
  EXPECT_TRUE(LeavesGraphAlone("lr.base"));
  EXPECT_FALSE(LeavesGraphAlone("lr.cosine.min_ratio"));
  EXPECT_FALSE(LeavesGraphAlone("amp.level"));
}

}  // namespace
}  // namespace passes
}  // namespace halftone
