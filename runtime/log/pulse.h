// Signs of life: what goes on is shown wherever nothing was said for two
// seconds, and what is urgent at once.
#ifndef HALFTONE_RUNTIME_LOG_PULSE_H_
#define HALFTONE_RUNTIME_LOG_PULSE_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/log/console.h"

namespace halftone {
namespace runtime {

// What a long work is at. One thread tells it, any may ask; neither waits nor
// allocates.
class Activity {
 public:
  using Clock = std::chrono::steady_clock;
  struct Now {
    const char* stage = "";  // "" : nothing that is shown
    int64_t number = 0, done = 0, of = 0;
    Clock::time_point began, moved;
  };

  // A stage ("eval"), its number (epoch 3; 0: none) and how much there is to do
  // (0: not known). `stage` is a literal.
  void Begin(const char* stage, int64_t number = 0, int64_t of = 0);
  void Did(int64_t done);
  Now now() const;

 private:
  std::atomic<const char*> stage_{""};
  std::atomic<int64_t> number_{0}, done_{0}, of_{0};
  std::atomic<Clock::rep> began_{0}, moved_{0};
};

// When a line is due. Where lines are rewritten (a terminal), one a second;
// elsewhere the lines of a stage come after 2, 4, 8 ... 60 seconds.
class Patience {
 public:
  using Clock = Activity::Clock;
  explicit Patience(bool rewritten) : rewritten_(rewritten) {}
  // Anew, with a new stage.
  void Reset() { wait_ = std::chrono::seconds(2); }
  // Whether a line is due that would be the first since `last`.
  bool IsDue(Clock::time_point now, Clock::time_point last) const {
    return now - last >= wait_;
  }
  void Shown();

 private:
  bool rewritten_;
  Clock::duration wait_ = std::chrono::seconds(2);
};

// "eval 3   1,024 of 10,000, 12 s so far, 2 min to go"; "set-up   12 s so far".
std::string ActivityText(const Activity::Now& now,
                         Activity::Clock::time_point at);

// A thread of its own while it lives.
class Pulse {
 public:
  // `doing` is the line to show, "" for none. `urgent` is asked twenty times a
  // second; once it is not empty it is said, and it is not asked again.
  // `stage` changes with what is done. All outlive the pulse.
  Pulse(Console* console, const Activity* activity,
        std::function<std::string(const Activity::Now&)> doing,
        std::function<std::string()> urgent);
  // Shows the activity as ActivityText has it.
  Pulse(Console* console, const Activity* activity);
  ~Pulse();
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

 private:
  void Run();
  void Beat();

  Console* console_;
  const Activity* activity_;
  std::function<std::string(const Activity::Now&)> doing_;
  std::function<std::string()> urgent_;
  bool said_ = false;
  Patience patience_;
  Activity::Clock::time_point stage_began_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_LOG_PULSE_H_
