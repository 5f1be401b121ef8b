#include "runtime/train/stop_rule.h"

#include <algorithm>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A skipped step that ran with `scale`.
StepRecord Skipped(int64_t step, float scale, double loss = 1) {
  StepRecord record;
  record.step = step;
  record.found_inf = true;
  record.loss_sum = loss;
  record.count = 1;
  record.scale_before = record.loss_scaling = scale;
  return record;
}

StepRecord Applied(int64_t step, float scale) {
  StepRecord record = Skipped(step, scale);
  record.found_inf = false;
  return record;
}

// Steps in a row until the rule fires; -1: not within `most`.
int FiresAfter(StopRuleWatch& watch, float scale, double loss, int most) {
  for (int i = 1; i <= most; ++i) {
    if (watch.Add(Skipped(i, scale, loss))) return i;
  }
  return -1;
}

TEST(StopRuleTest, FiftySkippedStepsInARow) {
  StopRuleWatch watch(proto::StopRule(), /*dynamic_scaling=*/true, /*floor=*/1);
  EXPECT_EQ(FiresAfter(watch, 1024, 1, 100), 50);
  EXPECT_EQ(watch.why(), "50 skipped steps in a row");
  EXPECT_EQ(watch.record().step, 50);
}

TEST(StopRuleTest, AnAppliedStepBeginsAnew) {
  StopRuleWatch watch(proto::StopRule(), true, 1);
  EXPECT_EQ(FiresAfter(watch, 1024, 1, 49), -1);
  EXPECT_FALSE(watch.Add(Applied(50, 1024)));
  EXPECT_EQ(FiresAfter(watch, 1024, 1, 100), 50);
}

TEST(StopRuleTest, TenAtTheFloor) {
  StopRuleWatch watch(proto::StopRule(), true, 1);
  EXPECT_EQ(FiresAfter(watch, 2, 1, 5), -1);
  EXPECT_EQ(FiresAfter(watch, 1, 1, 100), 10);
  EXPECT_THAT(watch.why(),
              HasSubstr("10 skipped steps in a row with the loss scale at its "
                        "floor of 1"));
}

// Of parts of the loss with scalers of their own: the scale of one that is not
// at fault says nothing.
TEST(StopRuleTest, AtTheFloorIsThePartAtFault) {
  StopRuleWatch watch(proto::StopRule(), true, 1);
  const auto skipped = [](int64_t step, float at_fault, float other) {
    StepRecord record = Skipped(step, std::min(at_fault, other));
    record.parts = {{false, other, other, 0}, {true, at_fault, at_fault, 1}};
    return record;
  };
  for (int64_t step = 1; step <= 20; ++step) {
    EXPECT_FALSE(watch.Add(skipped(step, 1024, 1))) << step;
  }
  for (int64_t step = 21; step < 30; ++step) {
    EXPECT_FALSE(watch.Add(skipped(step, 1, 1024))) << step;
  }
  EXPECT_TRUE(watch.Add(skipped(30, 1, 1024)));
  EXPECT_THAT(watch.why(), HasSubstr("with the loss scale at its floor of 1"));
}

TEST(StopRuleTest, WithoutAFloorItIsTheSmallestNormalNumber) {
  StopRuleWatch watch(proto::StopRule(), true, 0);
  EXPECT_EQ(FiresAfter(watch, 1e-30f, 1, 49), -1);
  EXPECT_FALSE(watch.Add(Applied(50, 1e-30f)));
  EXPECT_EQ(FiresAfter(watch, 0x1p-126f, 1, 100), 10);
}

TEST(StopRuleTest, AConstantScaleIsNoFloor) {
  StopRuleWatch watch(proto::StopRule(), /*dynamic_scaling=*/false, 1);
  EXPECT_EQ(FiresAfter(watch, 1, 1, 100), 50);
}

TEST(StopRuleTest, ThreeLossesThatAreNotFinite) {
  StopRuleWatch constant(proto::StopRule(), false, 0);
  EXPECT_EQ(FiresAfter(constant, 128, kNaN, 100), 3);
  EXPECT_THAT(constant.why(), HasSubstr("constant at 128"));
  StopRuleWatch at_floor(proto::StopRule(), true, 1);
  EXPECT_EQ(FiresAfter(at_floor, 1, kNaN, 100), 3);
  // A scale that can still fall may mend it.
  StopRuleWatch above(proto::StopRule(), true, 1);
  EXPECT_EQ(FiresAfter(above, 2, kNaN, 49), -1);
}

TEST(StopRuleTest, ZeroSwitchesARuleOff) {
  proto::StopRule rule;
  rule.set_skipped_in_a_row(0);
  rule.set_skipped_at_floor(0);
  rule.set_loss_not_finite(0);
  StopRuleWatch watch(rule, true, 1);
  EXPECT_EQ(FiresAfter(watch, 1, kNaN, 200), -1);
}

TEST(StopRuleTest, ARunWithoutAFiniteLoss) {
  StopRuleWatch watch(proto::StopRule(), true, 1);
  EXPECT_FALSE(watch.AtEnd());  // of no step
  EXPECT_FALSE(watch.Add(Skipped(1, 1024, kNaN)));
  std::map<std::string, double> numbers;
  watch.Save(&numbers);
  StopRuleWatch resumed(proto::StopRule(), true, 1);
  resumed.Restore(numbers);
  EXPECT_FALSE(resumed.Add(Skipped(2, 1024, kNaN)));
  EXPECT_TRUE(resumed.AtEnd());
  EXPECT_EQ(resumed.why(),
            "the run ended, and the loss was not finite in any of 2 steps");
  EXPECT_EQ(resumed.record().step, 2);

  EXPECT_FALSE(watch.Add(Applied(2, 1024)));
  EXPECT_FALSE(watch.Add(Skipped(3, 1024, kNaN)));
  EXPECT_FALSE(watch.AtEnd());
  numbers.clear();
  watch.Save(&numbers);
  StopRuleWatch finite(proto::StopRule(), true, 1);
  finite.Restore(numbers);
  EXPECT_FALSE(finite.Add(Skipped(4, 1024, kNaN)));
  EXPECT_FALSE(finite.AtEnd());
  // Of a run whose checkpoint does not say.
  numbers.erase("stop.steps");
  finite.Restore(numbers);
  EXPECT_FALSE(finite.AtEnd());

  proto::StopRule off;
  off.set_loss_not_finite(0);
  StopRuleWatch quiet(off, true, 1);
  EXPECT_FALSE(quiet.Add(Skipped(1, 1024, kNaN)));
  EXPECT_FALSE(quiet.AtEnd());
}

TEST(StopRuleTest, CountersSurviveARestart) {
  StopRuleWatch before(proto::StopRule(), true, 1);
  EXPECT_EQ(FiresAfter(before, 1, 1, 7), -1);
  std::map<std::string, double> numbers;
  before.Save(&numbers);
  StopRuleWatch after(proto::StopRule(), true, 1);
  after.Restore(numbers);
  EXPECT_EQ(FiresAfter(after, 1, 1, 100), 3);
}

TEST(StopRuleTest, TheHistoryNamesChangesOfTheScale) {
  StopRuleWatch watch(proto::StopRule(), true, 1);
  watch.Add(Applied(1, 4));
  StepRecord falls = Skipped(2, 4);
  falls.loss_scaling = 2;
  watch.Add(falls);
  watch.Add(Skipped(3, 2));
  EXPECT_EQ(watch.ScaleHistory(), "4 -> 2 (step 2)");
  for (int i = 0; i < 40; ++i) {
    StepRecord change = Skipped(10 + i, 2);
    change.loss_scaling = 1;
    watch.Add(change);
  }
  EXPECT_THAT(watch.ScaleHistory(), ::testing::StartsWith("... -> "));
}

// A lower scale cannot help: the gradients are finite.
TEST(StopRuleTest, LossesThatAreNotFiniteOfAppliedSteps) {
  StopRuleWatch watch(proto::StopRule(), /*dynamic_scaling=*/true, 1);
  const auto add = [&](double loss, bool found_inf) {
    StepRecord record = Skipped(1, 1024, loss);
    record.found_inf = found_inf;
    return watch.Add(record);
  };
  EXPECT_FALSE(add(kNaN, false));
  EXPECT_FALSE(add(kNaN, false));
  EXPECT_EQ(watch.not_finite(), 2);
  EXPECT_FALSE(add(1, false));  // begins anew
  EXPECT_EQ(watch.not_finite(), 0);
  EXPECT_FALSE(add(kNaN, false));
  EXPECT_FALSE(add(kNaN, true));  // the scale may still fall
  EXPECT_FALSE(add(kNaN, false));
  EXPECT_TRUE(add(kNaN, false));
  EXPECT_EQ(watch.why(),
            "the loss is not finite in 3 steps in a row, though the gradients "
            "are");
}

// All samples are masked: there is no loss.
TEST(StopRuleTest, StepsThatCountNothing) {
  StopRuleWatch watch(proto::StopRule(), false, 1);
  for (int i = 1; i < 10; ++i) {
    StepRecord record = Applied(i, 1);
    record.loss_sum = record.count = 0;
    EXPECT_FALSE(watch.Add(record));
  }
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
