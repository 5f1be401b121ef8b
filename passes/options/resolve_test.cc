#include <cmath>
#include <cstdio>
#include <string>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "passes/options/options.h"
#include "passes/options/options_testing.h"

namespace halftone {
namespace passes {
namespace {

using testing::ElementsAre;

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
  EXPECT_EQ(options.strategy.amp().level(), "O2");
  EXPECT_EQ(options.strategy.lr().base(), 0.5);
  EXPECT_EQ(options.strategy.train().batch_size(), 128);
  EXPECT_TRUE(options.strategy.dist().sync_batch_norm());
  EXPECT_THAT(options.strategy.amp().custom_black_varnames(),
              ElementsAre("a*", "b*"));
  EXPECT_EQ(options.strategy.optimizer().momentum().momentum(), 0.8);
  EXPECT_EQ(options.strategy.optimizer().group(0).match(), "bn*");
  EXPECT_TRUE(
      std::isinf(options.strategy.amp().loss_scaling().max_loss_scaling()));
  EXPECT_EQ(options.origins.at("amp.level"), "--level");
}

TEST(Origins, EveryFieldHasOne) {
  const Options options = MustResolve(
      "amp {\n level: 'O1'\n dtype: 'fp16' }\noptimizer { sgd { } }");
  EXPECT_EQ(options.origins.at("amp.level"), "dir/s.pbtxt:2");
  EXPECT_EQ(options.origins.at("amp.master_weights"), "level O1");
  EXPECT_EQ(options.origins.at("train.tail"), "default");
  EXPECT_EQ(options.origins.at("optimizer.sgd.weight_decay"), "default");
  EXPECT_EQ(options.strategy.train().tail(), "exact");
  EXPECT_TRUE(options.strategy.lr().constant());
  EXPECT_EQ(OriginOf(options, "amp.dtype"), "dir/s.pbtxt:3: amp.dtype");
  EXPECT_EQ(ExitCodeOf(FieldError(options, "amp.level", "no")),
            ExitCode::kModel);
}

TEST(RestoreStrategyTest, LevelTakesItsBundleAlong) {
  const Options first = MustResolve(
      "amp {\n level: 'O1' loss_scaling { decr_ratio: 0.8 } }\n"
      "optimizer { momentum { } }\ntrain { epochs: 3 }");
  const StrategyFile restored =
      RestoreStrategy(first.strategy, first.origins, first.op_lists);
  const auto same = ResolveOptions(restored, {});
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->strategy.DebugString(), first.strategy.DebugString());
  EXPECT_EQ(same->origins, first.origins);

  const auto o3 = ResolveOptions(restored, {{"amp.level", "O3", "--level"}});
  ASSERT_TRUE(o3.ok()) << o3.status();
  EXPECT_FALSE(o3->strategy.amp().master_weights());
  EXPECT_FALSE(o3->strategy.amp().loss_scaling().use_dynamic_loss_scaling());
  EXPECT_EQ(o3->strategy.amp().loss_scaling().decr_ratio(), 0.8);
  EXPECT_EQ(o3->origins.at("amp.loss_scaling.decr_ratio"), "dir/s.pbtxt:2");
  EXPECT_EQ(o3->strategy.train().epochs(), 3);
}

TEST(RestoreStrategyTest, KeepsListsWithoutTheirFile) {
  const std::string dir = testing::TempDir();
  const std::string lists = dir + "/gone.pbtxt";
  ASSERT_TRUE(WriteFileAtomically(lists, "op_lists { white: 'exp' }").ok());
  const auto first =
      Resolve("amp { op_lists: 'gone.pbtxt' }", {}, dir + "/s.pbtxt");
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(std::remove(lists.c_str()), 0);
  const auto again = ResolveOptions(
      RestoreStrategy(first->strategy, first->origins, first->op_lists), {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(again->op_lists.white(), ElementsAre("exp"));
}

}  // namespace
}  // namespace passes
}  // namespace halftone
