#include "runtime/train/timing.h"

#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

StepTimes Total(double ms) {
  StepTimes times;
  times.total = ms;
  times.data = ms / 2;
  return times;
}

TEST(StepClockTest, LeavesTheFirstStepOut) {
  StepClock clock(100);
  EXPECT_EQ(clock.median_ms(), 0);
  clock.Add(Total(1000), 64);
  for (int i = 1; i <= 20; ++i) clock.Add(Total(i), 10);
  EXPECT_EQ(clock.first_ms(), 1000);
  EXPECT_EQ(clock.median_ms(), 10);
  EXPECT_EQ(clock.p95_ms(), 19);
  EXPECT_NEAR(clock.samples_per_second(), 1000.0 * 200 / 210, 1e-9);
  EXPECT_EQ(clock.sum().total, 1210);
}

TEST(StepClockTest, KeepsTheLatest) {
  StepClock clock(2);
  for (const double ms : {9.0, 1.0, 2.0, 3.0, 4.0}) clock.Add(Total(ms), 1);
  EXPECT_EQ(clock.median_ms(), 3);
  EXPECT_EQ(clock.p95_ms(), 4);
}

TEST(RunTimesTest, EventsBeginAnew) {
  RunTimes times(10);
  times.AddStep(Total(2), 10);
  times.AddStep(Total(4), 20);
  const EventTimes first = times.SinceEvent();
  EXPECT_EQ(first.per_step.total, 3);
  EXPECT_EQ(first.per_step.data, 1.5);
  EXPECT_EQ(first.samples_per_second, 5000);
  // No step in between: the last means again.
  EXPECT_EQ(times.SinceEvent().per_step.total, 3);
  times.AddStep({8, 1, 2, 3, 0.5}, 8);
  const EventTimes last = times.SinceEvent();
  EXPECT_EQ(last.per_step.total, 8);
  EXPECT_EQ(last.per_step.update, 0.5);
  EXPECT_EQ(last.per_step.other(), 1.5);
  EXPECT_EQ(times.steps.sum().update, 0.5);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
