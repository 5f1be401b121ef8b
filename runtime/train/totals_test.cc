#include "runtime/train/totals.h"

#include <cmath>

#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

StepRecord Step(double loss_sum, double count, bool found_inf = false) {
  StepRecord record;
  record.loss_sum = loss_sum;
  record.count = count;
  record.found_inf = found_inf;
  return record;
}

// Losses 0.3 and 0.2 on one device and 0.8 on the other: the true mean, not
// the average of the averages (0.525).
TEST(RunningLossTest, IsTheMeanOverSamples) {
  RunningLoss loss;
  loss.Add(Step(0.3 + 0.2, 2));
  loss.Add(Step(0.8, 1));
  EXPECT_NEAR(loss.mean(), 0.4333333333333333, 1e-15);
}

TEST(RunningLossTest, SkippedStepsCountWhereTheirLossIsFinite) {
  RunningLoss loss;
  EXPECT_TRUE(std::isnan(loss.mean()));
  loss.Add(Step(INFINITY, 4, /*found_inf=*/true));
  EXPECT_TRUE(std::isnan(loss.mean()));
  loss.Add(Step(8, 4));
  EXPECT_EQ(loss.mean(), 2);
  loss.Add(Step(16, 4, /*found_inf=*/true));
  EXPECT_EQ(loss.mean(), 3);
  loss.Add(Step(NAN, 4));
  EXPECT_EQ(loss.mean(), 3);
  EXPECT_EQ(loss.count, 8);
  EXPECT_EQ(loss.skipped, 2);
  EXPECT_EQ(loss.not_finite, 2);
}

TEST(RunningLossTest, NothingCountedIsNotWrong) {
  RunningLoss loss;
  loss.Add(Step(0, 0));
  EXPECT_EQ(loss.not_finite, 0);
  EXPECT_TRUE(std::isnan(loss.mean()));
}

// One is rejected as long as any part's gradients are not finite: who shrinks
// longest is told.
TEST(PartAtFaultTest, IsTheOneFurthestFromItsFloor) {
  StepRecord record;
  EXPECT_EQ(record.PartAtFault(), -1);
  record.parts = {
      {false, 65536, 65536, 0}, {true, 256, 128, 0}, {true, 1024, 512, 0}};
  EXPECT_EQ(record.PartAtFault(), 2);
  record.parts[2].not_finite = false;
  EXPECT_EQ(record.PartAtFault(), 1);
  record.parts[1].not_finite = false;
  EXPECT_EQ(record.PartAtFault(), -1);
}

TEST(WhatIsAskedTest, TellsRequestsApart) {
  for (const int stopping : {0, 1, 5, 8192}) {
    for (const bool checkpoint : {false, true}) {
      for (const bool eval : {false, true}) {
        // The sum as the ranks make it: in f32.
        float sum = 0;
        if (checkpoint) sum += kAskCheckpoint;
        if (eval) sum += kAskEval;
        for (int r = 0; r < stopping; ++r) sum += kAskStop;
        const Asked asked = WhatIsAsked(sum);
        EXPECT_EQ(asked.stop, stopping > 0) << sum;
        EXPECT_EQ(asked.checkpoint, checkpoint) << sum;
        EXPECT_EQ(asked.eval, eval) << sum;
        EXPECT_EQ(asked.any(), stopping > 0 || checkpoint || eval);
      }
    }
  }
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
