// What a plan says a rank needs is what a run reserves, and within 1 % what it
// takes on CPUs.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/child.h"
#include "tests/support/run_files.h"

namespace halftone {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

struct Case {
  std::string model, strategy;
};

TEST(PlannedPeak, IsTheMeasuredOne) {
  std::vector<Case> cases;
  for (const char* model : {"mlp", "mnist_convnet", "small_resnet"}) {
    for (const char* strategy : {"mnist_fp32", "mnist_o1_bf16", "mnist_o2"}) {
      cases.push_back({model, strategy});
    }
  }
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.model, " by ", c.strategy));
    const std::string out = NewPath(c.model);
    const Result run = RunProgram(
        {"tools/halftone", "run", absl::StrCat("models/", c.model, ".pbtxt"),
         "--strategy", absl::StrCat("models/", c.strategy, ".pbtxt"), "--data",
         "synthetic:32", "--batch-size", "16", "--epochs", "1", "--out", out});
    ASSERT_EQ(run.exit_code(), 0) << run.err;
    const json summary = json::parse(ReadAll(out + "/summary.json"));
    const double planned = summary["planned_bytes"];
    const double peak = summary["peak_bytes"];
    EXPECT_GT(planned, 10000);
    EXPECT_LE(std::fabs(peak - planned), planned / 100)
        << planned << " planned, measured " << peak;
  }
}

json Parsed(const Result& result) {
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  return json::parse(result.out, nullptr, /*allow_exceptions=*/false);
}

// Entries beside train count: accumulate, average, those of dgc's stages, and
// eval, of which each rank has its own part of the memory; and workspaces of
// each thread.
TEST(PlannedPeak, OfAPlanIsThatOfARun) {
  const std::vector<std::string> settings = {
      "train.seed=1",
      "dist.gradient_merge.k_steps=2",
      "dist.gradient_merge.k_steps=3",
      "dist.sharding.stage=1",
      "dist.virtual_shards=4",
      "dist.localsgd.k_steps=2",
      "dist.dgc.rampup_begin_step=1",
      "memory.recompute.within=1",
  };
  for (const char* model : {"mlp", "small_resnet"}) {
    for (const std::string& setting : settings) {
      for (const char* ranks : {"1", "2", "3"}) {
        if (ranks[0] == '3' && setting == "dist.virtual_shards=4") continue;
        SCOPED_TRACE(absl::StrCat(model, " ", setting, " on ", ranks));
        const char* const threads = ranks[0] == '1' ? "5" : "2";
        const auto asked = [&](std::vector<std::string> args) {
          args.insert(args.begin(), "tools/halftone");
          args.insert(
              args.begin() + 2,
              {absl::StrCat("models/", model, ".pbtxt"), "--set",
               "optimizer.momentum.momentum=0.9", "--level", "O1", "--target",
               "cpu", "--batch-size", "16", "--set", setting, "--ranks", ranks,
               "--threads", threads, "--json"});
          return Parsed(RunProgram(args));
        };
        const json plan = asked({"plan"});
        // 16 more are evaluated.
        const json run =
            asked({"run", "--data", "synthetic:64", "--epochs", "1"});
        EXPECT_EQ(plan["peak_bytes"], run["planned_bytes"]);
        EXPECT_EQ(plan["threads"], absl::StrContains(setting, "shards")
                                       ? 1
                                       : std::stoi(threads));
      }
    }
  }
}

// Micro-batches and eval count: a run whose budget was accepted keeps to it.
TEST(PlannedPeak, KeepsToABudget) {
  const std::string model = NewPath("unet2d");
  ASSERT_EQ(RunProgram({"tools/halftone", "zoo", "unet2d", "--width", "8",
                        "--image-size", "32", "--classes", "4", "-o", model})
                .exit_code(),
            0);
  for (const char* setting :
       {"dist.gradient_merge.k_steps=2", "dist.virtual_shards=2"}) {
    SCOPED_TRACE(setting);
    const auto asked = [&](std::vector<std::string> args) {
      args.insert(args.begin(), "tools/halftone");
      args.insert(
          args.begin() + 2,
          {model, "--set", "optimizer.momentum.momentum=0.9", "--target", "cpu",
           "--batch-size", "32", "--set", setting, "--json"});
      return Parsed(RunProgram(args));
    };
    const int64_t budget =
        asked({"plan"})["peak_bytes"].get<int64_t>() * 9 / 10;
    const json run =
        asked({"run", "--data", "synthetic:160", "--epochs", "1", "--threads",
               "1", "--memory-budget", absl::StrCat(budget)});
    EXPECT_LE(run["planned_bytes"], budget);
    EXPECT_LE(run["peak_bytes"], budget);
  }
}

// A compiled model may be run with more samples than its budget was met for.
TEST(PlannedPeak, ARunThatNeedsMoreThanTheBudgetSaysSo) {
  const std::string model = NewPath("budget") + ".htc";
  const Result compiled = RunProgram(
      {"tools/halftone", "compile", "models/mnist_convnet.pbtxt", "--target",
       "cpu", "--strategy", "models/mnist_o1.pbtxt", "--batch-size", "8",
       "--memory-budget", "32MiB", "-o", model});
  ASSERT_EQ(compiled.exit_code(), 0) << compiled.err;
  EXPECT_THAT(compiled.out,
              HasSubstr(" of 32.0 MiB at 8 samples on one rank of "));
  const auto shown = [&](const char* batch) {
    const Result run =
        RunProgram({"tools/halftone", "run", model, "--data", "synthetic:1024",
                    "--epochs", "1", "--threads", "1", "--batch-size", batch});
    EXPECT_EQ(run.exit_code(), 0) << run.err;
    return run.out + run.err;
  };
  EXPECT_THAT(shown("64"), Not(HasSubstr("memory_budget")));
  EXPECT_THAT(shown("512"),
              ContainsRegex("warning  a rank needs [0-9.]* MiB with 1 thread, "
                            "train.memory_budget is 32.0 MiB: "));
}

}  // namespace
}  // namespace halftone
