// The last scale events of a run: what a summary keeps of them.
#ifndef HALFTONE_RUNTIME_REPORT_SCALE_RECORDER_H_
#define HALFTONE_RUNTIME_REPORT_SCALE_RECORDER_H_

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "runtime/report/step_events.h"

namespace halftone {
namespace runtime {

class ScaleRecorder {
 public:
  static constexpr size_t kMost = 1000;

  // In the order of steps.
  void Add(ScaleEvent event) {
    events_.push_back(std::move(event));
    if (events_.size() > kMost) events_.pop_front();
  }
  // The last kMost.
  std::vector<ScaleEvent> Events() const {
    return {events_.begin(), events_.end()};
  }

 private:
  std::deque<ScaleEvent> events_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_REPORT_SCALE_RECORDER_H_
