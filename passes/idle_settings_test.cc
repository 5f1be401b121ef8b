#include "passes/idle_settings.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "passes/compile_testing.h"

namespace halftone {
namespace passes {
namespace {

constexpr char kModel[] = R"(
feed { name: "x" dims: [-1, 8] }
param { name: "w" dims: [8, 8] init { constant: 1 } }
param { name: "b" dims: [8] init { constant: 1 } }
op { type: "matmul" in { slot: "X" var: "x" } in { slot: "Y" var: "w" } in { slot: "Bias" var: "b" } out { slot: "Out" var: "y" } }
op { type: "mean" in { slot: "X" var: "y" } out { slot: "Out" var: "loss" } }
loss { var: "loss" mean_over: "y" }
)";

using Settings = std::vector<std::pair<const char*, const char*>>;

// What P13 says of a model trained so.
std::string Said(const Settings& settings) {
  std::vector<Override> overrides;
  for (const auto& [path, value] : settings) {
    overrides.push_back({path, value, "--set"});
  }
  const auto compiled = CompileText(kModel, overrides);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  return compiled.ok() ? NoteOf(compiled->report, "P13") : "";
}

// Settings, and what is said of them with `sgd` for a method.
struct Case {
  Settings settings;
  const char* says;
};

TEST(IdleSettingsTest, AreToldWithTheReason) {
  for (const Case& c : {
           Case{{{"lr.one_cycle.max_lr", "1"},
                 {"lr.base", "5"},
                 {"lr.base_batch", "4"}},
                "no effect: --set: lr.base, --set: lr.base_batch "
                "(lr.one_cycle.max_lr says the rates)"},
           Case{{{"lr.cyclic.max_lr", "1"},
                 {"lr.cyclic.base_lr", "0.1"},
                 {"lr.base", "5"}},
                "no effect: --set: lr.base (lr.cyclic.base_lr and max_lr say "
                "the rates)"},
           Case{{{"amp.loss_scaling.decr_ratio", "0.3"}},
                "no effect: --set: amp.loss_scaling.decr_ratio (the loss scale "
                "is constant)"},
           Case{{{"dist.fuse_all_reduce_ops", "false"},
                 {"dist.first_bucket_size_in_MB", "3"},
                 {"memory.compress.group_size", "64"}},
                "no effect: --set: dist.first_bucket_size_in_MB "
                "(dist.fuse_all_reduce_ops is false); --set: "
                "memory.compress.group_size (memory.compress.bits is 0)"},
           Case{{{"memory.compress.group_size", "64"}},
                "no effect: --set: memory.compress.group_size "
                "(memory.compress.bits is 0)"},
           Case{{{"optimizer.group", "match: 'w' weight_decay: 0.1"},
                 {"optimizer.group", "match: '*' weight_decay: 0.2"}},
                "no effect: --set: optimizer.group \"w\" (later groups match "
                "all of its parameters)"},
           Case{{{"optimizer.group", "match: 'w' weight_decay: 0.1"},
                 {"optimizer.freeze", "w"}},
                "no effect: --set: optimizer.group \"w\" (it matches frozen "
                "parameters alone)"},
       }) {
    Settings settings = c.settings;
    settings.emplace_back("optimizer.sgd", "");
    EXPECT_EQ(Said(settings), c.says);
  }
  EXPECT_EQ(Said({{"optimizer.momentum", ""}, {"dist.dgc.sparsity", "0.5"}}),
            "no effect: dist.dgc (no parameter that is trained is large enough "
            "to be compressed)");
  EXPECT_EQ(Said({{"optimizer.lars.trust_ratio", "false"},
                  {"optimizer.lars.lars_coeff", "0.5"}}),
            "no effect: --set: optimizer.lars.lars_coeff "
            "(optimizer.lars.trust_ratio is false)");
}

TEST(IdleSettingsTest, WhatIsReadIsNotTold) {
  for (const Settings& c : {
           Settings{{"lr.one_cycle.factor", "2"}, {"lr.base", "5"}},
           Settings{{"lr.cyclic.max_lr", "9"}, {"lr.base", "5"}},
           Settings{{"amp.level", "O1"},
                    {"amp.loss_scaling.decr_ratio", "0.3"}},
           Settings{{"dist.first_bucket_size_in_MB", "3"}},
           Settings{{"memory.compress.bits", "4"},
                    {"memory.compress.group_size", "64"}},
           Settings{{"optimizer.group", "match: '*' weight_decay: 0.1"},
                    {"optimizer.group", "match: 'w' weight_decay: 0.2"}},
       }) {
    Settings settings = c;
    settings.emplace_back("optimizer.sgd", "");
    EXPECT_EQ(Said(settings), "") << c[0].first;
  }
  EXPECT_EQ(Said({{"optimizer.lars.trust_ratio", "false"},
                  {"optimizer.lars.lars_coeff", "0.5"},
                  {"optimizer.group", "match: 'w' trust_ratio: true"}}),
            "");
}

}  // namespace
}  // namespace passes
}  // namespace halftone
