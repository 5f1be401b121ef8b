#include "runtime/train/cadence.h"

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

TEST(ParseCadenceTest, StepsMinutesEpochs) {
  const auto steps = ParseCadence("--eval-every", "500");
  ASSERT_TRUE(steps.ok());
  EXPECT_EQ(steps->unit, Cadence::Unit::kSteps);
  EXPECT_EQ(steps->every, 500);
  EXPECT_EQ(ParseCadence("--eval-every", "10m")->unit, Cadence::Unit::kMinutes);
  EXPECT_EQ(ParseCadence("--eval-every", "1e")->unit, Cadence::Unit::kEpochs);
  EXPECT_EQ(ParseCadence("--eval-every", "never")->unit, Cadence::Unit::kNever);
}

TEST(ParseCadenceTest, RefusesOthers) {
  for (const char* text : {"", "e", "m", "0", "-1", "1.5e", "1x", "1ee",
                           "99999999999999999999", "1000000001"}) {
    const auto cadence = ParseCadence("--checkpoint-every", text);
    EXPECT_EQ(ExitCodeOf(cadence.status()), ExitCode::kUsage) << text;
    EXPECT_THAT(std::string(cadence.status().message()),
                ::testing::HasSubstr("--checkpoint-every"));
  }
}

TEST(CadenceClockTest, ByStepsAndEpochs) {
  const CadenceClock steps({Cadence::Unit::kSteps, 3}, CadenceClock::Time());
  EXPECT_FALSE(steps.DueAtStep(2));
  EXPECT_TRUE(steps.DueAtStep(6));
  EXPECT_FALSE(steps.DueAtEpoch(3));
  const CadenceClock epochs({Cadence::Unit::kEpochs, 2}, CadenceClock::Time());
  EXPECT_FALSE(epochs.DueAtStep(2));
  EXPECT_FALSE(epochs.DueAtEpoch(1));
  EXPECT_TRUE(epochs.DueAtEpoch(2));
  const CadenceClock never({Cadence::Unit::kNever, 1}, CadenceClock::Time());
  EXPECT_FALSE(never.DueAtEpoch(1) || never.DueAtStep(1));
}

TEST(CadenceClockTest, ByTimeAsksOncePerPeriod) {
  const CadenceClock::Time start = CadenceClock::Time();
  CadenceClock clock({Cadence::Unit::kMinutes, 10}, start);
  EXPECT_TRUE(clock.ByTime());
  EXPECT_FALSE(clock.DueByTime(start + std::chrono::minutes(9)));
  EXPECT_TRUE(clock.DueByTime(start + std::chrono::minutes(11)));
  EXPECT_FALSE(clock.DueByTime(start + std::chrono::minutes(20)));
  EXPECT_TRUE(clock.DueByTime(start + std::chrono::minutes(21)));
  // As many as the flag takes are no period that has passed.
  CadenceClock rare({Cadence::Unit::kMinutes, 1000000000}, start);
  EXPECT_FALSE(rare.DueByTime(start + std::chrono::hours(24)));
}

// It does not look at the time of day.
TEST(CadenceClockTest, FollowsAClockThatNobodySets) {
  static_assert(CadenceClock::Time::clock::is_steady);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
