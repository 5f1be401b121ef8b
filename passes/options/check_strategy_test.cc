#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "passes/options/options.h"
#include "passes/options/options_testing.h"

namespace halftone {
namespace passes {
namespace {

TEST(LossScaling, RefusesWhatNoScaleCanBe) {
  const auto with = [](const std::string& fields) {
    return "amp {\n level: 'O1'\n loss_scaling {\n" + fields + "} }";
  };
  ExpectError(with("init_loss_scaling: 0"),
              "dir/s.pbtxt:4: amp.loss_scaling.init_loss_scaling: expected a "
              "number from 1.17549435e-38 to 3.40282347e+38, found 0");
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
  ExpectError(
      with("min_loss_scaling: 4 max_loss_scaling: 2"),
      "min_loss_scaling: expected at most max_loss_scaling, 2, found 4");
}

TEST(Schedule, NoneIsNotRefusedByName) {
  ExpectError("lr { constant: false }",
              "lr.constant: expected true, found \"false\"");
}

TEST(Memory, IsChosenInOneWay) {
  ExpectError("memory { recompute {\n within: '3 bananas' } }",
              "dir/s.pbtxt:2: memory.recompute.within: expected bytes such as "
              "8GiB or 512MB, found \"3 bananas\"");
  ExpectError("train { batch_size: 4\n memory_budget: '0' }",
              "dir/s.pbtxt:2: train.memory_budget: expected bytes such as 8GiB "
              "or 512MB, found \"0\"");
  ExpectError("memory { recompute { checkpoints: 'a' within: '1GiB' } }",
              "memory.recompute.within: memory.recompute.checkpoints is set, "
              "too");
  ExpectError(
      "memory { recompute { checkpoints: 'a' } }\n"
      "train { batch_size: 4 memory_budget: '1GiB' }",
      "train.memory_budget: memory.recompute.checkpoints is set, too");
  ExpectError(
      "memory { recompute { within: '1GiB' } }\n"
      "train { batch_size: 4 memory_budget: '1GiB' }",
      "train.memory_budget: memory.recompute.within is set, too");
  ExpectError("train { memory_budget: '1GiB' }",
              "train.memory_budget: needs train.batch_size or "
              "train.batch_size_per_rank");
}

TEST(Dist, OptionsThatExcludeEachOther) {
  ExpectError("dist { gradient_scale: 'post'\n gradient_predivide_factor: 2 }",
              "dir/s.pbtxt:2: dist.gradient_predivide_factor: "
              "dist.gradient_scale: \"post\" is set, too: one divides before");
  ExpectError("dist { gradient_predivide_factor: 0 }",
              "expected a number from 1e-30 to 1e30, found 0");
  ExpectError("dist { gradient_predivide_factor: nan }", "found nan");
  ExpectError("dist { allreduce_always_fp32: true\n fp16_allreduce: true }",
              "dir/s.pbtxt:2: dist.fp16_allreduce: dist.allreduce_always_fp32 "
              "is set, too");
  ExpectError("dist { fuse_grad_size_in_MB: 32\n message_size: 100 }",
              "dir/s.pbtxt:2: dist.message_size: dist.fuse_grad_size_in_MB is "
              "set, too: buckets are measured in elements or in MiB");
  ExpectError("dist { first_bucket_size_in_MB: 1\n message_size: 100 }",
              "dist.message_size: dist.first_bucket_size_in_MB is set, too");
  ExpectError("dist { fuse_all_reduce_ops: false\n message_size: 100 }",
              "dist.message_size: dist.fuse_all_reduce_ops: false is set, too");
  ExpectError(
      "dist { localsgd { k_steps: 4 }\n gradient_merge { k_steps: 2 } }",
      "dir/s.pbtxt: dist.localsgd: dist.gradient_merge.k_steps is set, too");
  ExpectError(
      "optimizer { adam {} }\ndist { adaptive_localsgd { begin_step: 4 } }",
      "dist.adaptive_localsgd: optimizer.adam is set, too");
  ExpectError("dist { gradient_merge { k_steps: 2 }\n gradient_mean: 'ranks' }",
              "dir/s.pbtxt:2: dist.gradient_mean: dist.gradient_merge.k_steps "
              "is set, too");
  ExpectError("dist { gradient_mean: 'rank' }", "nearest: ranks");
  ExpectError(
      "dist { sync_batch_norm: true\n batch_norm_statistics: 'rank0' }",
      "dir/s.pbtxt:2: dist.batch_norm_statistics: dist.sync_batch_norm is set");
  ExpectError(
      "dist { gradient_merge { k_steps: 2 }\n batch_norm_statistics: 'rank0' }",
      "dist.batch_norm_statistics: dist.gradient_merge.k_steps is set, too");
  ExpectError("dist { sync_batch_norm_group_size: 2 }",
              "dist.sync_batch_norm_group_size: dist.sync_batch_norm is not "
              "true");
  ExpectError(
      "dist { reduce: 'exact_order'\n use_hierarchical_allreduce: true }",
      "dir/s.pbtxt:2: dist.use_hierarchical_allreduce: dist.reduce: "
      "\"exact_order\" is set, too");
  ExpectError("dist { hierarchical_allreduce_inter_nranks: 2 }",
              "dist.hierarchical_allreduce_inter_nranks: "
              "dist.use_hierarchical_allreduce is not true");
  ExpectError("dist { hierarchical_allreduce_inter_nranks: -1 }", "found -1");
  ExpectError("dist { reduce: 'exact' }",
              "expected any_order or exact_order, found \"exact\"");
  ExpectError("dist { message_size: 0 }",
              "expected a whole number, 1 or above, found 0");
}

TEST(Dist, WhatVirtualShardsExclude) {
  ExpectError("dist { virtual_shards: 12 }",
              "dir/s.pbtxt:1: dist.virtual_shards: expected a power of two, "
              "found 12");
  ExpectError("dist { virtual_shards: 0 }",
              "expected a power of two from 1 to 1024, found 0");
  ExpectError("dist { virtual_shards: 2048 }", "from 1 to 1024, found 2048");
  ExpectError("dist { virtual_shards: 16 }\ntrain { batch_size: 8 }",
              "dist.virtual_shards: expected at most train.batch_size, 8, "
              "found 16: each shard has a sample");
  for (const auto& [set, named] :
       std::vector<std::pair<const char*, const char*>>{
           {"gradient_merge { k_steps: 2 }", "dist.gradient_merge.k_steps"},
           {"sync_batch_norm: true", "dist.sync_batch_norm"},
           {"batch_norm_statistics: 'rank0'", "dist.batch_norm_statistics"},
           {"gradient_mean: 'ranks'", "dist.gradient_mean"},
           {"reduce: 'exact_order'", "dist.reduce"},
           {"fp16_allreduce: true", "dist.fp16_allreduce"},
           {"gradient_predivide_factor: 2",
            "dist.gradient_predivide_factor"}}) {
    ExpectError(absl::StrCat("dist { virtual_shards: 8\n", set, " }"),
                absl::StrCat("dir/s.pbtxt:1: dist.virtual_shards: ", named,
                             " is set, too: "));
  }
  ExpectError("dist { virtual_shards: 8 }\ntrain { batch_size_per_rank: 8 }",
              "dist.virtual_shards: train.batch_size_per_rank is set, too");
}

TEST(Memory, IsCompressedToWholePartsOfBytes) {
  ExpectError("memory { compress {\n bits: 3 } }",
              "dir/s.pbtxt:2: memory.compress.bits: expected 8, 4, 2 or 0, "
              "found 3");
  ExpectError("memory { compress { bits: 9 } }",
              "memory.compress.bits: expected 8, 4, 2 or 0, found 9");
  ExpectError("memory { compress { bits: 2 group_size: 100 } }",
              "memory.compress.group_size: expected a multiple of 32 from 32 "
              "to 1024, found 100");
  ExpectError("memory { compress { bits: 2 group_size: 16 } }",
              "memory.compress.group_size: expected a multiple of 32 from 32 "
              "to 1024, found 16");
  ExpectError("memory { compress { values: 'a' } }",
              "memory.compress.values: names what is compressed, and "
              "memory.compress.bits is 0");
  ExpectError("memory { compress { bits: 4 } recompute { checkpoints: 'a' } }",
              "memory.compress.bits: memory.recompute.checkpoints is set, too");
}

TEST(StrategyChecks, TellIndependentErrorsTogether) {
  ExpectError(
      "amp { level: 'O7'\n dtype: 'f31'\n custom_black_list: ['sofmax',\n "
      "'reluu'] }\ntrain { epochs: 0\n seed: -1 }",
      "dir/s.pbtxt:1: amp.level: expected O0, O1, O2 or O3, found \"O7\"\n"
      "dir/s.pbtxt:2: amp.dtype: expected fp16 or bf16, found \"f31\"");
  const char* const strategy =
      "amp { level: 'O1' custom_black_list: ['sofmax',\n 'reluu'] }\n"
      "train { epochs: 0\n seed: -1 }";
  ExpectError(strategy, "dir/s.pbtxt:3: train.epochs: ");
  ExpectError(strategy, "\ndir/s.pbtxt:4: train.seed: ");
  ExpectError(strategy, "\"sofmax\"; nearest: softmax");
  ExpectError(strategy, "\"reluu\"; nearest: relu");
  // Of one field, the first of its errors.
  ExpectError("",
              "--set: a strategy has no field \"amp.levl\"; nearest: "
              "amp.level\n--epochs: train.epochs: expected a whole number",
              ExitCode::kUsage,
              {{"amp.levl", "O1", "--set"}, {"train.epochs", "x", "--epochs"}});
  ExpectError("",
              "--set: train.seed: expected a whole number up to "
              "9223372036854775807, found \"9223372036854775808\"",
              ExitCode::kUsage,
              {{"train.seed", "9223372036854775808", "--set"}});
  ExpectError("train { seed: -1 }",
              "train.seed: expected a whole number from 0 to "
              "9223372036854775807, found -1");
}

TEST(StrategyChecks, NameLineFieldAndRange) {
  ExpectError("amp {\n\n level: 'O7' }",
              "dir/s.pbtxt:3: amp.level: expected O0, O1, O2 or O3, found "
              "\"O7\"");
  ExpectError("amp { dtype: 'f32' }",
              "amp.dtype: expected fp16 or bf16, found \"f32\"");
  ExpectError(
      "amp { precision_rule: 'all_lo' }",
      "expected all_low, any_low or min_cost, found \"all_lo\"; nearest: "
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
  ExpectError("train { epochs: 1000000001 }",
              "above 0 and at most 1000000000, found 1000000001");
  ExpectError("train { batch_size: 1000000000001 }",
              "train.batch_size: expected at most 1000000000000, found");
  ExpectError("train { stop_rule { skipped_in_a_row: 0 } }",
              "train.stop_rule.skipped_in_a_row");
  ExpectError("lr { base: -0.1 }", "lr.base: expected a finite number");
  ExpectError(
      "lr { base: 1e39 }",
      "lr.base: expected what f32 holds, at most 3.4028234663852886e+38");
  ExpectError("optimizer { adam { epsilon: 1e-60 } }",
              "optimizer.adam.epsilon: expected what is not 0 in f32");
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
  ExpectError("optimizer { sgd {} group { match: '*' beta1: 0.5 } }",
              "sets beta1, and optimizer.sgd has no such field");
  ExpectError("optimizer { adam {} group { match: '*' trust_ratio: false } }",
              "sets trust_ratio, and optimizer.adam has no such field");
  ExpectError("optimizer { lamb {} group { match: '*' beta2: 1 } }",
              "dir/s.pbtxt:1: optimizer.group[0].beta2: expected a number "
              "from 0 to below 1, found 1");
  ExpectError(
      "optimizer { adam {} group { match: 'a' }\n group { match: '*'\n "
      "beta1: 0.5\n beta2: -1 } }",
      "dir/s.pbtxt:4: optimizer.group[1].beta2: expected a number from 0");
  ExpectError("optimizer { adam {} }",
              "--set: optimizer.group[0].lr_scale: expected lr_scale 0 or "
              "above, found -1",
              ExitCode::kUsage,
              {{"optimizer.group", "match: '*' lr_scale: -1", "--set"}});
  // What the method takes.
  ExpectError("optimizer { adam {} group { match: '*' epsilon: 0 } }",
              "optimizer.group[0].epsilon: expected a finite number above 0");
  MustResolve("optimizer { lars {} group { match: '*' epsilon: 0 } }");
  ExpectError("", "--set: optimizer.adam.beta2: expected what is not 1 in f32",
              ExitCode::kUsage,
              {{"optimizer.adam.beta2", "0.99999999", "--set"}});
  ExpectError("optimizer { rmsprop { alpha: 1 } }", "optimizer.rmsprop.alpha");
  ExpectError("optimizer { }", "names no method; one of: sgd momentum adam");
  ExpectError("optimizer { momentum { momentum: 1 } }",
              "optimizer.momentum.momentum");
  ExpectError("optimizer { adamw { beta2: 1.5 } }", "optimizer.adamw.beta2");
  ExpectError("optimizer { adam { epsilon: 0 } }", "optimizer.adam.epsilon");
  ExpectError("optimizer { sgd { weight_decay: -1 } }",
              "optimizer.sgd.weight_decay");
  ExpectError("optimizer { sgd {} clip { } }",
              "expected one of global_norm, value and norm");
  ExpectError("optimizer { sgd {} clip { global_norm: 1 norm: 1 } }",
              "optimizer.clip.norm: global_norm is set, too");
  ExpectError("optimizer { sgd {} clip { norm: 1 value: 1 } }",
              "optimizer.clip.norm: value is set, too");
  ExpectError("optimizer { sgd {} clip { value: -1 } }",
              "optimizer.clip.value");
  ExpectError("optimizer { sgd {} clip { global_norm: 0 } }",
              "optimizer.clip.global_norm");
  ExpectError("optimizer { sgd {}\n group { weight_decay: 0 } }",
              "dir/s.pbtxt:2: optimizer.group: match is missing");
  const Options options = MustResolve("optimizer { adam { } }");
  EXPECT_TRUE(options.strategy.has_optimizer());
  EXPECT_EQ(options.strategy.optimizer().adam().beta2(), 0.999);
}

// As in a file, where the parser refuses it; a flag over a file's is fine.
TEST(StrategyChecks, FlagsNameOneMethodAndOneSchedule) {
  const std::string one = "is set by another flag, too: choose one";
  ExpectError("", "--set: optimizer.adamw: optimizer.adam " + one,
              ExitCode::kUsage,
              {{"optimizer.adam.weight_decay", "0.3", "--set"},
               {"optimizer.adamw.beta1", "0.8", "--set"}});
  ExpectError(
      "", "--set: optimizer.sgd: optimizer.adam " + one, ExitCode::kUsage,
      {{"optimizer", "adam { }", "--set"}, {"optimizer.sgd", "", "--set"}});
  ExpectError("", "--set: lr.linear: lr.cosine " + one, ExitCode::kUsage,
              {{"lr.cosine.min_ratio", "0.1", "--set"},
               {"lr.linear.min_ratio", "0.2", "--set"}});
  const Options options = MustResolve("optimizer { sgd { } } lr { cosine { } }",
                                      {{"optimizer.adam.beta1", "0.8", "--set"},
                                       {"optimizer.adam.beta2", "0.9", "--set"},
                                       {"lr.constant", "true", "--set"}});
  EXPECT_TRUE(options.strategy.optimizer().has_adam());
  EXPECT_TRUE(options.strategy.lr().constant());
}

TEST(Schedules, RefuseWhatDoesNotGoTogether) {
  ExpectError("lr { step { } }",
              "lr.step.step_size: expected a whole number above 0, found 0");
  ExpectError("lr { step { step_size: 0 } }",
              "lr.step.step_size: expected a whole number above 0, found 0");
  ExpectError("lr { step { step_size: 3 every: 'epoch' } }",
              "expected steps or epochs, found \"epoch\"; nearest: epochs");
  ExpectError("lr { multi_step { } }",
              "lr.multi_step.milestones: milestones are missing: rising whole "
              "numbers above 0");
  ExpectError("lr { multi_step { milestones: 9\n milestones: 4 } }",
              "dir/s.pbtxt:2: lr.multi_step.milestones: expected rising whole "
              "numbers above 0, found 4");
  ExpectError("lr { exponential { } }",
              "lr.exponential.gamma: gamma is missing: ");
  ExpectError("lr { polynomial { cycle: true } }",
              "lr.polynomial.cycle: begins again after decay_steps, which is "
              "not set: the run is over before");
  ExpectError("lr { one_cycle { max_lr: 1 factor: 2 } }",
              "lr.one_cycle.factor: max_lr is set, too: choose one");
  ExpectError("lr { one_cycle { pct_start: 0.6 three_phase: true } }",
              "lr.one_cycle.pct_start: expected at most 0.5 with three_phase");
  ExpectError("lr { one_cycle { anneal_strategy: 'cosine' } }",
              "expected cos or linear, found \"cosine\"");
  ExpectError("lr { warmup_epochs: 2 noam { d_model: 8 } }",
              "lr.warmup_epochs: lr.noam warms up by itself: set "
              "lr.noam.warmup_steps alone");
  ExpectError("lr { cyclic { base_lr: 1 max_lr: 0.5 } }",
              "lr.cyclic.max_lr: expected at least base_lr, 1, found 0.5");
  ExpectError("lr { base: 1 cyclic { max_lr: 0.5 } }",
              "lr.cyclic.max_lr: expected at least lr.base, 1, found 0.5");
  MustResolve("lr { base: 1 cyclic { base_lr: 0 max_lr: 0.5 } }");
  ExpectError("lr { cyclic { max_lr: 0.5 gamma: 0.9 } }",
              "lr.cyclic.gamma: is of mode exp_range alone, and mode is "
              "triangular");
  ExpectError("lr { cosine_restarts { T_0: 4 T_mult: 0 } }",
              "lr.cosine_restarts.T_mult: expected a whole number, 1 or above");
}

}  // namespace
}  // namespace passes
}  // namespace halftone
