#include "tools/report/plan_report.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tools/report/testing/test_models.h"

namespace halftone {
namespace tools {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Text(const PlanQuestion& question) {
  const auto text = PlanText(Convnet(), question, /*json=*/false);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *text : "";
}

nlohmann::json Parsed(const absl::StatusOr<std::string>& text) {
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? nlohmann::json::parse(*text) : nlohmann::json();
}

TEST(PlanReport, SplitsTheBatch) {
  EXPECT_THAT(Text({1, 0}), HasSubstr("ranks        1 on cpu, batch 64\n"));
  EXPECT_THAT(Text({4, 0}), HasSubstr("batch 64 = 4 x 16\n"));
  EXPECT_THAT(Text({3, 0}), HasSubstr("batch 64 = 22 + 2 x 21\n"));
  EXPECT_THAT(Text({2, 31}), HasSubstr("batch 31 = 16 + 15\n"));
}

// Each of them has its own workspaces.
TEST(PlanReport, CountsThreads) {
  const auto peak = [](int threads) {
    const auto json =
        Parsed(PlanText(Convnet(), {1, 0, "", threads}, /*json=*/true));
    EXPECT_EQ(json["threads"], threads);
    return json["peak_bytes"].get<int64_t>();
  };
  EXPECT_GT(peak(8), peak(1));
  EXPECT_THAT(Text({1, 0, "", 8}), HasSubstr(" on rank 0 with 8 threads = "));
  EXPECT_THAT(Text({1, 0}), HasSubstr(" on rank 0 with 1 thread = "));
  const auto most = [](int threads) {
    const auto json = Parsed(MaxBatchText(Convnet(), {1, 0, "", threads},
                                          /*memory=*/"32MiB", /*json=*/true));
    EXPECT_EQ(json["threads"], threads);
    return json["max_batch"].get<int64_t>();
  };
  EXPECT_LT(most(8), most(1));
}

TEST(PlanReport, RemarksOnRanksWithoutSamples) {
  const std::string text = Text({128, 0});
  EXPECT_THAT(text, HasSubstr("batch 64 on 64 of 128 ranks\n"));
  EXPECT_THAT(text, HasSubstr("note         64 of 128 ranks have no sample"));
  EXPECT_THAT(Text({64, 0}), Not(HasSubstr("note")));
  const auto json = Parsed(PlanText(Convnet(), {128, 0}, /*json=*/true));
  EXPECT_EQ(json["notes"].size(), 1u);
  EXPECT_EQ(json["samples_of_rank_0"], 1);
}

TEST(PlanReport, NamesTheBuckets) {
  EXPECT_THAT(Text({2, 0}),
              HasSubstr("gradients    10 in 2 buckets: f32 384 B (4), f16 "
                        "57,876 B (6)\n"));
  const auto json = Parsed(PlanText(Convnet(), {2, 0}, /*json=*/true));
  ASSERT_EQ(json["buckets"].size(), 2u);
  EXPECT_EQ(json["buckets"][1]["bytes"], 57876);
  EXPECT_EQ(json["buckets"][1]["members"].size(), 6u);
  int64_t arenas = 0;
  for (const auto& arena : json["arenas"]) arenas += arena.get<int64_t>();
  EXPECT_EQ(json["peak_bytes"], arenas);
}

// Sums, gathers and scatters alike.
TEST(PlanReport, NamesAllCollectives) {
  EXPECT_THAT(Text({2, 0}), HasSubstr(", 2 x f32 768 B gathered\n"));
  const auto json = Parsed(PlanText(Convnet(), {2, 0}, /*json=*/true));
  int gathers = 0;
  size_t sums = 0;
  for (const auto& collective : json["collectives"]) {
    if (collective["kind"] == "all_reduce") {
      EXPECT_EQ(collective["name"], json["all_reduces"][sums++]["name"]);
      continue;
    }
    EXPECT_EQ(collective["kind"], "all_gather");
    EXPECT_EQ(collective["dtype"], "f32");
    EXPECT_EQ(collective["bytes"], 768);
    ++gathers;
  }
  EXPECT_EQ(gathers, 2);
  EXPECT_EQ(sums, json["all_reduces"].size());
}

TEST(PlanReport, SaysWhatOfTheOptimizerARankHolds) {
  EXPECT_THAT(Text({4, 0}), Not(HasSubstr("optimizer ")));
  const CompiledModel sharded =
      CompileConvnet({{"dist.sharding.stage", "1", "--set"}});
  const auto text = PlanText(sharded, {4, 0}, /*json=*/false);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("\noptimizer    "));
  EXPECT_THAT(*text, HasSubstr(" without dist.sharding\n"));
  const auto bytes = [](const CompiledModel& model) {
    return Parsed(PlanText(model, {4, 0}, /*json=*/true))["optimizer_bytes"]
        .get<double>();
  };
  EXPECT_LE(bytes(sharded), 0.3 * bytes(Convnet()));
}

TEST(PlanReport, OtherEntriesOfTheTraining) {
  EXPECT_THAT(Text({2, 0}), HasSubstr("\nentries      train "));
  const CompiledModel local =
      CompileConvnet({{"dist.localsgd.k_steps", "4", "--set"},
                      {"dist.sync_batch_norm", "false", "--set"}});
  const auto plan = [&](const std::string& entry) {
    return PlanText(local, {2, 0, entry}, /*json=*/false);
  };
  EXPECT_THAT(*plan(""),
              ContainsRegex("\nentries      train [^,]*, average [^,]*, eval "
                            "[^,]* share the peak; train is shown below, "
                            "others with --entry\n"));
  EXPECT_THAT(*plan("average"),
              AllOf(HasSubstr(" on rank 0 with 1 thread for average alone = "),
                    Not(HasSubstr("entries "))));
  EXPECT_THAT(Text({2, 0, "eval"}), Not(HasSubstr("\ngradients ")));
  // Parameters are averaged there, and gradients summed nowhere.
  EXPECT_THAT(*plan("average"), HasSubstr("all-reduces  f32 "));
  const auto json = Parsed(PlanText(local, {2, 0, "average"}, /*json=*/true));
  EXPECT_EQ(json["entry"], "average");
  EXPECT_GT(json["all_reduces"].size(), 0u);
  EXPECT_EQ(json["entries"].size(), 0u);
  // Each entry has its own arenas for what is reduced and for results.
  const auto whole = Parsed(PlanText(local, {2, 0}, /*json=*/true));
  int64_t most = 0;
  for (const auto& entry : whole["entries"]) {
    most = std::max(most, entry["peak_bytes"].get<int64_t>());
  }
  EXPECT_GT(whole["peak_bytes"], most);
  const auto wrong = plan("averge");
  EXPECT_EQ(ExitCodeOf(wrong.status()), ExitCode::kUsage);
  EXPECT_THAT(std::string(wrong.status().message()),
              HasSubstr("--entry averge: the model has no such entry; nearest: "
                        "average; it has "));
}

// As a run binds it: 7 samples of a rank are 3 micro-batches of 3, 2 and 2.
TEST(PlanReport, EntriesHaveTheSamplesOfAMicroBatch) {
  const CompiledModel merged =
      CompileConvnet({{"dist.gradient_merge.k_steps", "3", "--set"},
                      {"dist.sync_batch_norm", "false", "--set"}});
  const auto samples = [&](const std::string& entry) {
    return Parsed(PlanText(merged, {2, 13, entry},
                           /*json=*/true))["samples_of_rank_0"]
        .get<int>();
  };
  EXPECT_EQ(samples("accumulate"), 3);
  EXPECT_EQ(samples("train"), 2);
}

TEST(PlanReport, RefusesRanksThatVirtualShardsDoNotTake) {
  const CompiledModel shards =
      CompileConvnet({{"dist.virtual_shards", "4", "--set"},
                      {"dist.sync_batch_norm", "false", "--set"}});
  const auto plan = PlanText(shards, {3, 0}, /*json=*/false);
  EXPECT_THAT(std::string(plan.status().message()),
              HasSubstr("dist.virtual_shards 4: expected a number of ranks "
                        "that divides it (1, 2, 4), found 3"));
}

TEST(PlanReport, StepsAsTextAndJson) {
  const auto text = StepsText(Convnet(), {1, 8}, /*json=*/false);
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("compute kernel conv1 ["));
  const auto json = Parsed(StepsText(Convnet(), {1, 8}, /*json=*/true));
  EXPECT_EQ(json["step_list"].size(), json["steps"]);
  EXPECT_EQ(json["step_list"][0]["name"], "x");
  EXPECT_EQ(json["step_list"][0]["kind"], "kernel");
  EXPECT_EQ(json["step_list"][0]["inputs"][0]["bytes"], 8 * 28 * 28);
}

TEST(PlanReport, TheLargestBatchIsTheLargest) {
  const auto json =
      Parsed(MaxBatchText(Convnet(), {1, 0}, /*memory=*/"8MiB", /*json=*/true));
  const int64_t most = json["max_batch"];
  const auto peak = [](int64_t batch) {
    return Parsed(PlanText(Convnet(), {1, batch}, /*json=*/true))["peak_bytes"]
        .get<int64_t>();
  };
  EXPECT_LE(peak(most), 8 << 20);
  EXPECT_GT(peak(most + 1), 8 << 20);
  EXPECT_EQ(json["peak_bytes"], peak(most));
}

TEST(ParseBytes, UnitsAndErrors) {
  EXPECT_EQ(*ParseBytes("--memory", "8GiB"), int64_t{8} << 30);
  EXPECT_EQ(*ParseBytes("--memory", "1.5 MB"), 1500000);
  EXPECT_EQ(*ParseBytes("--memory", "1000"), 1000);
  for (const char* wrong : {"", "8 apples", "-1GiB", "GiB", "0"}) {
    const auto bytes = ParseBytes("--memory", wrong);
    EXPECT_EQ(ExitCodeOf(bytes.status()), ExitCode::kUsage) << wrong;
  }
}

}  // namespace
}  // namespace tools
}  // namespace halftone
