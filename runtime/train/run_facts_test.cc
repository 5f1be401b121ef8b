#include "runtime/train/run_facts.h"

#include <cmath>

#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

TEST(RunFacts, StateOfAStep) {
  StepRecord record;
  record.step = 70;
  record.applied = 69;
  record.epoch = 4;
  record.found_inf = true;
  record.loss_scaling = 16384;
  record.bad_steps = 1;
  RunningLoss since;
  since.sum = 8;
  since.count = 64;
  since.skipped = 2;
  EventTimes times;
  times.samples_per_second = 930;
  const StepEvent event = StateOf(record, since, times);
  EXPECT_EQ(event.step, 70);
  EXPECT_EQ(event.applied, 69);
  EXPECT_EQ(event.epoch, 4);
  EXPECT_EQ(event.loss, 0.125f);
  EXPECT_EQ(event.n, 64);
  EXPECT_EQ(event.skipped, 2);
  EXPECT_TRUE(event.found_inf);
  EXPECT_EQ(event.loss_scaling, 16384);
  EXPECT_EQ(event.bad_steps, 1);
  EXPECT_EQ(event.times.samples_per_second, 930);
  EXPECT_TRUE(std::isnan(StateOf(record, RunningLoss(), times).loss));
}

// Two epochs of 16 samples, then one of 64.
TEST(RunFacts, TotalStepsCountThoseOfAnotherBatchSize) {
  TrainConfig config;
  config.strategy.mutable_train()->set_epochs(3);
  Rank rank;
  rank.inputs.config = &config;
  rank.sampler.size = 1438;
  rank.sampler.batch = 64;
  EXPECT_EQ(TotalSteps(rank), 69);
  rank.progress.step = 180;
  rank.progress.epoch = 2;
  EXPECT_EQ(TotalSteps(rank), 203);
  rank.progress.step = 190;
  rank.progress.sample = 160;  // the third batch of 64 begins at 128
  EXPECT_EQ(TotalSteps(rank), 190 + 21);
  rank.progress.epoch = 3;
  rank.progress.sample = 0;
  EXPECT_EQ(TotalSteps(rank), 190);
}

TEST(RunFacts, EvalOfAReport) {
  EvalReport report;
  report.loss = 0.25;
  report.metrics = {{"top1", {3, 4}}, {"none", {0, 0}}};
  const EvalEvent event = EvalOf(report);
  EXPECT_EQ(event.loss, 0.25);
  ASSERT_EQ(event.metrics.size(), 2u);
  EXPECT_EQ(event.metrics[0].name, "none");
  EXPECT_EQ(event.metrics[0].value, 0);
  EXPECT_EQ(event.metrics[1].value, 0.75);
  EXPECT_EQ(event.metrics[1].correct, 3);
  EXPECT_EQ(event.metrics[1].total, 4);
}

// An earlier run's eval is not this one's.
TEST(RunFacts, EvalsOfARunThatGoesOn) {
  TrainConfig config;
  Rank rank;
  rank.inputs.config = &config;
  const auto has_eval = [&rank] { return LastEvalOf(rank).has_value(); };
  Progress& p = rank.progress;
  EXPECT_FALSE(has_eval());
  p.step = p.eval_step = 46;
  EXPECT_TRUE(has_eval());
  p.step = 60;
  EXPECT_TRUE(has_eval());  // its own, of some steps ago
  EXPECT_EQ(LastEvalOf(rank)->step, 46);
  rank.start.resumed = true;
  rank.start.numbers["step"] = 46;
  EXPECT_FALSE(has_eval());
  p.eval_step = 60;
  EXPECT_TRUE(has_eval());
  // Nothing was left to do: the eval is of the very state.
  p.step = p.eval_step = 46;
  EXPECT_TRUE(has_eval());
  config.eval_every.unit = Cadence::Unit::kNever;
  EXPECT_FALSE(has_eval());
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
