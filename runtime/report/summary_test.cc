#include "runtime/report/summary.h"

#include <unistd.h>

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace halftone {
namespace runtime {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

RunStarted TwoRanks() {
  RunStarted run;
  run.strategy.mutable_train()->set_seed(7);
  run.strategy.mutable_amp()->set_level("O1");
  run.strategy.mutable_amp()->set_dtype("fp16");
  run.fingerprint = "3f9a1c77";
  run.left_out = 3;
  run.data = "idx:models/digits";
  run.world_size = 2;
  run.batch = 64;
  return run;
}

TEST(Summary, HoldsTheRun) {
  RunEnded end;
  end.step = 115;
  end.applied = 114;
  end.epoch = 5;
  end.first_loss = 2.5;
  end.last_loss = std::numeric_limits<double>::infinity();
  end.loss_scaling = 32768;
  end.scale_events = {{3, 1, true, "fc.w.grad has inf", 65536, 32768},
                      {9, 2, false, "", 32768, 65536}};
  end.eval = EvalEvent();
  end.eval->loss = 0.1;
  end.eval->metrics = {{"top1", 0.75, 3, 4}};
  end.best_epoch = 4;
  end.speed = {11200, 5.5, 6.5, 38};
  end.peak_bytes = 1 << 20;
  end.planned_bytes = 1 << 19;
  end.optimizer_bytes = 1 << 18;
  const json read = json::parse(SummaryJson(TwoRanks(), end));
  json expected = {
      {"schema", 1},
      {"exit", 0},
      {"steps_attempted", 115},
      {"steps_applied", 114},
      {"steps_skipped", 1},
      {"epochs", 5},
      {"loss_first", 2.5},
      {"loss_last", "inf"},
      {"loss_scaling", 32768.0},
      {"scale_events",
       {{{"step", 3},
         {"epoch", 1},
         {"skipped", true},
         {"scale_before", 65536.0},
         {"loss_scaling", 32768.0},
         {"first_bad", "fc.w.grad has inf"}},
        {{"step", 9},
         {"epoch", 2},
         {"skipped", false},
         {"scale_before", 32768.0},
         {"loss_scaling", 65536.0},
         {"first_bad", nullptr}}}},
      {"metrics", {{"top1", {{"value", 0.75}, {"correct", 3}, {"total", 4}}}}},
      {"eval_loss", 0.1},
      {"best_epoch", 4},
      {"samples_per_second", 11200.0},
      {"step_ms_median", 5.5},
      {"step_ms_p95", 6.5},
      {"peak_bytes", 1 << 20},
      {"planned_bytes", 1 << 19},
      {"optimizer_bytes", 1 << 18},
      {"ranks", 2},
      {"seed", 7},
      {"shuffle", true},
      {"deterministic", true},
      {"data", "idx:models/digits"},
      {"samples_left_out", 3},
      {"batch_size", 64},
      {"level", "O1"},
      {"dtype", "fp16"},
      {"fingerprint", "3f9a1c77"},
      {"strategy", read["strategy"]},
  };
  EXPECT_EQ(read, expected);
  EXPECT_THAT(read["strategy"].get<std::string>(), HasSubstr("seed: 7"));
}

TEST(Summary, WhatWasNeverMeasuredIsNull) {
  const json read = json::parse(SummaryJson(TwoRanks(), RunEnded()));
  for (const char* name : {"eval_loss", "best_epoch", "samples_per_second",
                           "step_ms_median", "step_ms_p95"}) {
    EXPECT_TRUE(read[name].is_null()) << name;
  }
  EXPECT_EQ(read["metrics"], json::object());
  EXPECT_EQ(read["loss_last"], "nan");
  EXPECT_FALSE(read.contains("profile"));
}

TEST(Summary, HoldsTheProfile) {
  RunEnded end;
  end.profile = ProfileTable();
  end.profile->device = "H100";
  end.profile->steps = 7;
  end.profile->step_ms = 50;
  end.profile->rows = {{"conv forward", 2, 3, 1e6, 2e6, 0.5},
                       {"idle", 48, 0, 0, 0, std::nullopt}};
  const json read = json::parse(SummaryJson(TwoRanks(), end))["profile"];
  EXPECT_EQ(read["steps"], 7);
  EXPECT_EQ(read["step_ms"], 50);
  EXPECT_EQ(read["device"], "H100");
  EXPECT_EQ(read["classes"][0], (json{{"class", "conv forward"},
                                      {"ms", 2.0},
                                      {"kernels", 3},
                                      {"bytes", 1e6},
                                      {"flops", 2e6},
                                      {"roofline_ms", 0.5}}));
  EXPECT_FALSE(read["classes"][1].contains("roofline_ms"));
}

TEST(SummaryFile, IsWrittenAtTheEnd) {
  const std::string directory =
      absl::StrCat(::testing::TempDir(), "/summary-", getpid());
  const std::string path = directory + "/summary.json";
  SummaryFile file(directory);
  file.On(TwoRanks());
  ASSERT_TRUE(file.Flush().ok());
  EXPECT_FALSE(ReadFile(path).ok());
  RunEnded end;
  end.exit_code = 5;
  file.On(end);
  ASSERT_TRUE(file.Flush().ok());
  EXPECT_EQ(*ReadFile(path), SummaryJson(TwoRanks(), end));
}

TEST(SummaryFile, IsNotWrittenWhereItIsNotOurs) {
  const std::string directory =
      absl::StrCat(::testing::TempDir(), "/not-ours-", getpid());
  absl::Status is_ours;
  SummaryFile file(directory, [&] { return is_ours; });
  file.On(TwoRanks());
  file.On(RunEnded());
  is_ours = absl::UnknownError("another's");
  EXPECT_EQ(file.Flush(), is_ours);
  EXPECT_FALSE(ReadFile(directory + "/summary.json").ok());
}

// What a --resume that has nothing to do is given is not what it was trained
// with.
TEST(SummaryFile, StaysAsItWasWhereNothingIsTrained) {
  const std::string directory =
      absl::StrCat(::testing::TempDir(), "/whole-", getpid());
  const auto write = [&](const RunStarted& run, int64_t step, int exit_code,
                         bool evaluates = false) {
    RunEnded end;
    end.step = step;
    end.exit_code = exit_code;
    SummaryFile file(directory);
    file.On(run);
    if (evaluates) file.On(EvalEvent());
    file.On(end);
    ASSERT_TRUE(file.Flush().ok());
  };
  const auto data = [&] {
    return json::parse(*ReadFile(directory + "/summary.json"))["data"];
  };
  RunStarted run = TwoRanks();
  write(run, 46, 143);
  run.resumed = Resumed();
  run.resumed->step = 46;
  run.data = "1";
  write(run, 46, 0);
  EXPECT_EQ(data(), "1") << "it had not ended well";
  run.data = "2";
  write(run, 46, 0);
  EXPECT_EQ(data(), "1");
  run.data = "3";
  write(run, 46, 0, /*evaluates=*/true);
  EXPECT_EQ(data(), "3");
  run.data = "4";
  write(run, 47, 0);
  EXPECT_EQ(data(), "4");
  run.resumed->step = 69;
  run.data = "5";
  write(run, 69, 0);
  EXPECT_EQ(data(), "5") << "what is there is of an earlier step";
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
