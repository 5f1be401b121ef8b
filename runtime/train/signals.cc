#include "runtime/train/signals.h"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "graph/base/system/repeated_signal.h"

namespace halftone {
namespace runtime {
namespace {

std::atomic<int> caught_signal{0};
std::atomic<int64_t> caught_at_ms{0};
static_assert(std::atomic<int>::is_always_lock_free &&
                  std::atomic<int64_t>::is_always_lock_free,
              "a signal handler may touch them");

extern "C" void OnSignal(int number) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t ms = int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
  int64_t never = 0;
  if (caught_at_ms.compare_exchange_strong(never, ms)) {
    caught_signal = number;
  } else if (ms - never >= kSameRequestMs) {
    _exit(128 + number);
  }
}

}  // namespace

SignalCatcher::SignalCatcher() {
  caught_signal = 0;
  caught_at_ms = 0;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (int i = 0; i < 3; ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    // What nohup or a shell's background job ignores stays ignored.
    if (before_[i].sa_handler == SIG_IGN) continue;
    sigaction(kSignals[i], &action, nullptr);
  }
  action.sa_handler = SIG_IGN;
  for (int i = 0; i < 2; ++i) {
    sigaction(kFailedWrites[i], &action, &writes_before_[i]);
  }
}

SignalCatcher::~SignalCatcher() {
  for (int i = 0; i < 3; ++i) sigaction(kSignals[i], &before_[i], nullptr);
  for (int i = 0; i < 2; ++i) {
    sigaction(kFailedWrites[i], &writes_before_[i], nullptr);
  }
}

int SignalCatcher::caught() { return caught_signal; }

}  // namespace runtime
}  // namespace halftone
