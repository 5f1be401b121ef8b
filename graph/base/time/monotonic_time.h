// Moments for deadlines and for how long something took.
#ifndef HALFTONE_GRAPH_BASE_TIME_MONOTONIC_TIME_H_
#define HALFTONE_GRAPH_BASE_TIME_MONOTONIC_TIME_H_

#include "absl/time/time.h"

namespace halftone {

// A moment by a clock that only runs on. absl::Now() is the time of day, which
// somebody may set: a deadline by it passes at once, or never. A type of its
// own, so that the two are not mixed up.
class MonotonicTime {
 public:
  // Some moment in the past.
  MonotonicTime() = default;
  static MonotonicTime Now();
  static MonotonicTime InfiniteFuture() {
    return MonotonicTime(absl::InfiniteDuration());
  }

  friend MonotonicTime operator+(MonotonicTime time, absl::Duration more) {
    return MonotonicTime(time.since_start_ + more);
  }
  friend MonotonicTime operator-(MonotonicTime time, absl::Duration less) {
    return MonotonicTime(time.since_start_ - less);
  }
  friend absl::Duration operator-(MonotonicTime to, MonotonicTime from) {
    return to.since_start_ - from.since_start_;
  }
  friend bool operator==(MonotonicTime a, MonotonicTime b) {
    return a.since_start_ == b.since_start_;
  }
  friend bool operator!=(MonotonicTime a, MonotonicTime b) { return !(a == b); }
  friend bool operator<(MonotonicTime a, MonotonicTime b) {
    return a.since_start_ < b.since_start_;
  }
  friend bool operator>(MonotonicTime a, MonotonicTime b) { return b < a; }
  friend bool operator<=(MonotonicTime a, MonotonicTime b) { return !(b < a); }
  friend bool operator>=(MonotonicTime a, MonotonicTime b) { return !(a < b); }

 private:
  explicit MonotonicTime(absl::Duration since_start)
      : since_start_(since_start) {}

  absl::Duration since_start_;  // of the machine, or nearly so
};

// What poll() takes for a wait until `deadline`: whole milliseconds, rounded
// up, 0 if it has passed, -1 if it never comes.
int PollTimeout(MonotonicTime deadline);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_TIME_MONOTONIC_TIME_H_
