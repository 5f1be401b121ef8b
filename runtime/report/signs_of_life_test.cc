#include "runtime/report/signs_of_life.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Twenty steps an epoch, three epochs.
Activity::Now Training(int64_t done) {
  Activity::Now now;
  now.stage = kTrainStage;
  now.number = 20;
  now.of = 60;
  now.done = done;
  now.began = now.moved = Activity::Clock::now();
  return now;
}

TEST(TrainingText, StepsThatEndSpeakForThemselves) {
  EXPECT_EQ(TrainingText(Training(3)), "");
  Activity::Now now = Training(3);
  now.moved -= std::chrono::seconds(30);
  EXPECT_THAT(TrainingText(now), AllOf(StartsWith("train    step 4 of 60, 3"),
                                       HasSubstr(" s in it so far")));
  now.stage = "checkpoint";
  EXPECT_THAT(TrainingText(now), StartsWith("checkpoint"));
}

TEST(StoppingText, NamesNoStepThatIsNotKnown) {
  EXPECT_EQ(StoppingText(Training(3), true),
            "stop     finishing the steps under way, then a checkpoint; once "
            "more stops now");
  EXPECT_THAT(StoppingText(Training(3), false),
              HasSubstr("under way (nothing is kept without --out); once"));
  Activity::Now now = Training(20);
  now.stage = "eval";
  EXPECT_THAT(StoppingText(now, true),
              HasSubstr("finishing the eval and the next steps, then a"));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
