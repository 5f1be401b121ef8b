#include "runtime/log/pulse.h"

#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using Time = Activity::Clock::time_point;
using std::chrono::seconds;

TEST(Patience, InAPipeLinesComeMoreAndMoreSeldom) {
  Patience patience(/*rewritten=*/false);
  const Time last;
  EXPECT_FALSE(patience.IsDue(last + seconds(1), last));
  for (const int wait : {2, 4, 8, 16, 32, 60, 60}) {
    EXPECT_FALSE(patience.IsDue(last + seconds(wait - 1), last)) << wait;
    EXPECT_TRUE(patience.IsDue(last + seconds(wait), last)) << wait;
    patience.Shown();
  }
  patience.Reset();
  EXPECT_TRUE(patience.IsDue(last + seconds(2), last));
}

TEST(Patience, OnATerminalOnceASecond) {
  Patience patience(/*rewritten=*/true);
  const Time last;
  EXPECT_FALSE(patience.IsDue(last + seconds(1), last));
  patience.Shown();
  patience.Shown();
  EXPECT_TRUE(patience.IsDue(last + seconds(1), last));
}

TEST(ActivityText, SaysHowFarItIs) {
  Activity::Now now;
  now.stage = "set-up";
  const Time at = now.began + seconds(12);
  EXPECT_EQ(ActivityText(now, at), "set-up   12 s so far");
  now.stage = "eval";
  now.number = 3;
  now.of = 10000;
  EXPECT_EQ(ActivityText(now, at), "eval 3   0 of 10,000, 12 s so far");
  now.done = 2500;
  EXPECT_EQ(ActivityText(now, at),
            "eval 3   2,500 of 10,000, 12 s so far, 36 s to go");
}

TEST(Activity, BeginsAnewWithEachStage) {
  Activity activity;
  EXPECT_STREQ(activity.now().stage, "");
  activity.Begin("eval", 2, 50);
  activity.Did(7);
  EXPECT_EQ(activity.now().done, 7);
  EXPECT_GE(activity.now().moved, activity.now().began);
  activity.Begin("checkpoint");
  EXPECT_STREQ(activity.now().stage, "checkpoint");
  EXPECT_EQ(activity.now().done, 0);
  EXPECT_EQ(activity.now().of, 0);
}

// What is urgent is said once, however long the pulse goes on.
TEST(Pulse, SaysWhatIsUrgent) {
  std::FILE* const out = std::tmpfile();
  std::FILE* const err = std::tmpfile();
  Console console(out, err, 0);
  Activity activity;
  std::atomic<int> asked{0};
  {
    Pulse pulse(&console, &activity, nullptr, [&asked]() -> std::string {
      return ++asked < 3 ? "" : "stop";
    });
    while (asked < 3) std::this_thread::yield();
  }
  std::rewind(err);
  char text[100] = {};
  EXPECT_EQ(std::fread(text, 1, sizeof(text), err), 5u);
  EXPECT_STREQ(text, "stop\n");
  EXPECT_EQ(asked, 3);
  std::fclose(out);
  std::fclose(err);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
