#include "graph/base/time/monotonic_time.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace halftone {

MonotonicTime MonotonicTime::Now() {
  return MonotonicTime(
      absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()));
}

int PollTimeout(MonotonicTime deadline) {
  if (deadline == MonotonicTime::InfiniteFuture()) return -1;
  const int64_t ms = absl::ToInt64Milliseconds(
      absl::Ceil(deadline - MonotonicTime::Now(), absl::Milliseconds(1)));
  return static_cast<int>(std::clamp<int64_t>(ms, 0, 1 << 30));
}

}  // namespace halftone
