#include "runtime/train/timing.h"

#include <algorithm>
#include <cmath>

namespace halftone {
namespace runtime {
namespace {

constexpr int64_t kMostKept = 1 << 20;

}  // namespace

StepClock::StepClock(int64_t expected_steps)
    : capacity_(std::max<int64_t>(1, std::min(expected_steps, kMostKept))) {
  ms_.reserve(capacity_);
}

void StepClock::Add(const StepTimes& times, int64_t samples) {
  sum_.Add(times);
  if (steps_++ == 0) {
    first_ms_ = times.total;
    return;
  }
  samples_ += samples;
  later_ms_ += times.total;
  const auto ms = static_cast<float>(times.total);
  if (ms_.size() < capacity_) {
    ms_.push_back(ms);
  } else {
    ms_[(steps_ - 2) % capacity_] = ms;
  }
}

double StepClock::samples_per_second() const {
  return later_ms_ > 0 ? 1000.0 * samples_ / later_ms_ : 0;
}

double StepClock::Quantile(double q) const {
  if (ms_.empty()) return 0;
  std::vector<float> sorted = ms_;
  // The nearest rank: the smallest value with at least q of all at or below.
  const auto rank = static_cast<size_t>(
      std::max(1.0, std::ceil(q * static_cast<double>(sorted.size()))));
  std::nth_element(sorted.begin(), sorted.begin() + rank - 1, sorted.end());
  return sorted[rank - 1];
}

void RunTimes::AddStep(const StepTimes& times, int64_t samples) {
  steps.Add(times, samples);
  sum_.Add(times);
  samples_ += samples;
  ++count_;
}

EventTimes RunTimes::Means() const {
  if (count_ == 0) return last_;
  const auto count = static_cast<double>(count_);
  EventTimes means;
  means.per_step = {sum_.total / count, sum_.data / count,
                    sum_.forward_backward / count, sum_.communicate / count,
                    sum_.update / count};
  means.samples_per_second =
      sum_.total > 0 ? 1000.0 * static_cast<double>(samples_) / sum_.total : 0;
  return means;
}

EventTimes RunTimes::SinceEvent() {
  last_ = Means();
  sum_ = StepTimes();
  count_ = samples_ = 0;
  return last_;
}

}  // namespace runtime
}  // namespace halftone
