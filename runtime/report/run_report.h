// The observers of a run, and what becomes of it when they cannot write.
#ifndef HALFTONE_RUNTIME_REPORT_RUN_REPORT_H_
#define HALFTONE_RUNTIME_REPORT_RUN_REPORT_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/report/run_observer.h"

namespace halftone {
namespace runtime {

class RunReport {
 public:
  // Observers are told in the order in which they were added.
  void Add(std::unique_ptr<RunObserver> observer) {
    observers_.push_back(std::move(observer));
  }

  template <typename Event>
  void Emit(const Event& event) {
    for (const auto& observer : observers_) observer->On(event);
  }

  // Writes what waits. Logs that cannot be written (a full disk) do not end a
  // training: a warning says so when it begins and when it ends.
  void Flush();

  // The end, where it does count: an error, or `written` of what else was to
  // be written, is the run's own if that was a good one, and returned.
  absl::Status Finish(RunEnded end, absl::Status written);

 private:
  absl::Status FlushAll();

  std::vector<std::unique_ptr<RunObserver>> observers_;
  bool waits_ = false;  // for being written
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_REPORT_RUN_REPORT_H_
