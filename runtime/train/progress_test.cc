#include "runtime/train/progress.h"

#include <cmath>

#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

Progress MakeProgress() {
  Progress progress;
  StepRecord record;
  record.step = 7;
  record.applied = 6;
  record.loss_sum = 0.1 + 0.2;
  record.count = 3;
  record.loss_scaling = 16384;
  record.good_steps = 4;
  record.bad_steps = 1;
  progress.Add(record, 2, 448);
  EvalReport report;
  report.loss = 1.0 / 3;
  report.samples = 359;
  report.metrics["top1"] = {350, 359};
  report.metrics["a.correct"] = {1, 2};
  progress.Add(report, "top1");
  return progress;
}

TEST(ProgressTest, RoundTripIsExact) {
  const Progress before = MakeProgress();
  const auto decoded = Decode(Encode(ToNumbers(before)));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const absl::StatusOr<Progress> read = FromNumbers(*decoded);
  ASSERT_TRUE(read.ok()) << read.status();
  const Progress& after = *read;
  EXPECT_EQ(ToNumbers(after)["since_event.sum"], 0.1 + 0.2);
  EXPECT_EQ(after.step, 7);
  EXPECT_EQ(after.epoch, 2);
  EXPECT_EQ(after.sample, 448);
  EXPECT_EQ(after.loss_scaling, 16384);
  EXPECT_TRUE(std::isnan(after.first_loss));
  EXPECT_EQ(after.eval.loss, 1.0 / 3);
  EXPECT_EQ(after.eval.metrics.at("top1").correct, 350);
  EXPECT_EQ(after.eval.metrics.at("a.correct").total, 2);
  EXPECT_EQ(after.best_step, 7);
  EXPECT_EQ(after.best_epoch, 3);
}

TEST(ProgressTest, DamagedNumbersAreRefused) {
  const std::string encoded = Encode(ToNumbers(MakeProgress()));
  for (const size_t cut : {size_t{1}, size_t{5}, encoded.size() - 1}) {
    EXPECT_EQ(ExitCodeOf(Decode(encoded.substr(0, cut)).status()),
              ExitCode::kCommunication);
  }
}

// A manifest may hold anything under a true checksum.
TEST(ProgressTest, NumbersThatAreNoCountsAreRefused) {
  const auto good = ToNumbers(MakeProgress());
  for (const char* key : {"step", "applied", "epoch", "sample", "good_steps",
                          "bad_steps", "best.epoch", "eval.step", "best.step",
                          "since_event.count", "eval.samples"}) {
    ASSERT_EQ(good.count(key), 1u) << key;
    for (const double bad : {-2.0, 1e300, -1e300, 9.1e15, std::nan(""),
                             std::numeric_limits<double>::infinity()}) {
      auto numbers = good;
      numbers[key] = bad;
      const auto progress = FromNumbers(numbers);
      ASSERT_FALSE(progress.ok()) << key << bad;
      EXPECT_NE(progress.status().message().find("expected a"),
                std::string::npos);
    }
  }
  for (const char* key :
       {"eval.metric.top1.correct", "eval.metric.top1.total"}) {
    ASSERT_EQ(good.count(key), 1u) << key;
    auto numbers = good;
    numbers[key] = 1e300;
    EXPECT_FALSE(FromNumbers(numbers).ok()) << key;
    numbers[key] = -2;
    EXPECT_TRUE(FromNumbers(numbers).ok()) << key;
  }
  for (const auto& [key, value] : std::map<std::string, double>{
           {"step", 5}, {"sample", 0.5}, {"epoch", -1}}) {
    auto numbers = good;
    numbers[key] = value;
    EXPECT_FALSE(FromNumbers(numbers).ok()) << key;
  }
}

TEST(ProgressTest, TheBestEvalIsTheFirstOfTheHighest) {
  Progress progress;
  EvalReport report;
  report.metrics["top1"] = {5, 10};
  progress.step = 10;
  progress.epoch = 1;
  EXPECT_TRUE(progress.Add(report, "top1"));
  progress.step = 20;
  progress.epoch = 2;
  EXPECT_FALSE(progress.Add(report, "top1"));
  EXPECT_EQ(progress.best_step, 10);
  EXPECT_EQ(progress.best_epoch, 1);
  EXPECT_EQ(progress.eval_step, 20);
}

TEST(ProgressTest, NoNumberIsNotTheBest) {
  Progress progress;
  EvalReport report;
  report.loss = std::nan("");
  progress.step = 10;
  EXPECT_FALSE(progress.Add(report, ""));
  EXPECT_EQ(progress.best_step, -1);
  EXPECT_EQ(progress.eval_step, 10);
  report.loss = 3;
  progress.step = 20;
  EXPECT_TRUE(progress.Add(report, ""));
  EXPECT_EQ(progress.best_step, 20);
  report.loss = std::nan("");
  EXPECT_FALSE(progress.Add(report, ""));
  EXPECT_EQ(progress.best_step, 20);
  // As a checkpoint may have it that an earlier version wrote.
  progress.best = std::nan("");
  report.loss = 4;
  progress.step = 30;
  EXPECT_TRUE(progress.Add(report, ""));
  EXPECT_EQ(progress.best_step, 30);
}

TEST(ProgressTest, WithoutAMetricALowerLossIsBetter) {
  Progress progress;
  EvalReport report;
  report.loss = 2;
  EXPECT_TRUE(progress.Add(report, ""));
  report.loss = 3;
  EXPECT_FALSE(progress.Add(report, ""));
  report.loss = 1;
  EXPECT_TRUE(progress.Add(report, ""));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
