// Where the time of a run went.
#ifndef HALFTONE_RUNTIME_TRAIN_TIMING_H_
#define HALFTONE_RUNTIME_TRAIN_TIMING_H_

#include <chrono>
#include <cstdint>
#include <vector>

#include "runtime/data/batch_reader.h"
#include "runtime/report/step_events.h"

namespace halftone {
namespace runtime {

// Seconds since it was made or last restarted.
class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }
  double Restart() {
    const Clock::time_point now = Clock::now();
    const double passed = std::chrono::duration<double>(now - start_).count();
    start_ = now;
    return passed;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

// Steps' durations. Keeps the latest ones for the quantiles and allocates
// nothing after it was made.
class StepClock {
 public:
  explicit StepClock(int64_t expected_steps);
  void Add(const StepTimes& times, int64_t samples);

  int64_t steps() const { return steps_; }
  double first_ms() const { return first_ms_; }
  // Without the first step; 0 if there was no other.
  double median_ms() const { return Quantile(0.5); }
  double p95_ms() const { return Quantile(0.95); }
  double samples_per_second() const;
  const StepTimes& sum() const { return sum_; }  // the first step included

 private:
  double Quantile(double q) const;

  int64_t steps_ = 0, samples_ = 0;
  double first_ms_ = 0, later_ms_ = 0;
  StepTimes sum_;
  std::vector<float> ms_;  // a ring
  size_t capacity_;
};

// All times of a run.
class RunTimes {
 public:
  explicit RunTimes(int64_t expected_steps) : steps(expected_steps) {}

  void AddStep(const StepTimes& times, int64_t samples);
  // The means since the last event; those of the event itself if no step was
  // added since.
  EventTimes Means() const;
  // The same, and begins anew.
  EventTimes SinceEvent();

  StepClock steps;
  double eval_seconds = 0, checkpoint_seconds = 0;
  BatchReader::Work reading;
  Stopwatch run;

 private:
  StepTimes sum_;
  int64_t count_ = 0, samples_ = 0;
  EventTimes last_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_TIMING_H_
