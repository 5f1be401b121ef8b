#include "graph/base/time/monotonic_time.h"

#include "gtest/gtest.h"

namespace halftone {
namespace {

TEST(MonotonicTime, RunsOn) {
  const MonotonicTime start = MonotonicTime::Now();
  const MonotonicTime later = start + absl::Hours(1);
  EXPECT_LT(MonotonicTime(), start);
  EXPECT_LE(start, MonotonicTime::Now());
  EXPECT_GT(later, start);
  EXPECT_EQ(later - start, absl::Hours(1));
  EXPECT_EQ(later - absl::Hours(1), start);
  EXPECT_NE(later, start);
  EXPECT_GT(MonotonicTime::InfiniteFuture(), later);
}

TEST(MonotonicTime, AsPollTakesIt) {
  const MonotonicTime now = MonotonicTime::Now();
  EXPECT_EQ(PollTimeout(now - absl::Seconds(5)), 0);
  EXPECT_EQ(PollTimeout(MonotonicTime::InfiniteFuture()), -1);
  EXPECT_EQ(PollTimeout(now + absl::Hours(10000)), 1 << 30);
  const int in_an_hour = PollTimeout(now + absl::Hours(1));
  EXPECT_GT(in_an_hour, 3000000);
  EXPECT_LE(in_an_hour, 3600000);
  // Never 0, with which a caller would spin, before the deadline.
  const MonotonicTime soon = MonotonicTime::Now() + absl::Microseconds(300);
  const int wait = PollTimeout(soon);
  EXPECT_TRUE(wait == 1 || MonotonicTime::Now() > soon) << wait;
}

}  // namespace
}  // namespace halftone
