// Who shows or keeps what happens in a run: a console, a log, a summary.
#ifndef HALFTONE_RUNTIME_REPORT_RUN_OBSERVER_H_
#define HALFTONE_RUNTIME_REPORT_RUN_OBSERVER_H_

#include "absl/status/status.h"
#include "runtime/report/run_events.h"

namespace halftone {
namespace runtime {

// Takes what it can use. A run tells one start first, one end last, all from
// one thread; nothing that an observer does changes the run.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void On(const RunStarted&) {}
  virtual void On(const GraphEvent&) {}
  virtual void On(const StepEvent&) {}
  virtual void On(const ProgressEvent&) {}
  virtual void On(const SkipEvent&) {}
  virtual void On(const ScaleEvent&) {}
  virtual void On(const NotFiniteEvent&) {}
  virtual void On(const EvalEvent&) {}
  virtual void On(const CheckpointEvent&) {}
  virtual void On(const RestartEvent&) {}
  virtual void On(const WarningEvent&) {}
  virtual void On(const RunEnded&) {}
  // Writes what events have left to write; what cannot be written (a full
  // disk) is kept for the next time. Errors: kModel.
  virtual absl::Status Flush() { return absl::OkStatus(); }
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_REPORT_RUN_OBSERVER_H_
