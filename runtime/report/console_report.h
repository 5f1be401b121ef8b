// A run on the console: what goes on as it does, and the report at the end.
#ifndef HALFTONE_RUNTIME_REPORT_CONSOLE_REPORT_H_
#define HALFTONE_RUNTIME_REPORT_CONSOLE_REPORT_H_

#include <cstdint>

#include "runtime/log/console.h"
#include "runtime/log/pulse.h"
#include "runtime/report/run_observer.h"

namespace halftone {
namespace runtime {

class ConsoleReport : public RunObserver {
 public:
  // `console` outlives the observer. `json`: the report is summary.json's
  // object.
  ConsoleReport(Console* console, bool json);

  void On(const RunStarted& run) override;
  void On(const StepEvent& event) override;
  // Shown where nothing was for a while: step events may be far apart.
  void On(const ProgressEvent& event) override;
  void On(const SkipEvent& event) override;
  void On(const NotFiniteEvent& event) override;
  void On(const EvalEvent& event) override;
  void On(const CheckpointEvent& event) override { checkpoint_ = event.step; }
  void On(const WarningEvent& event) override;
  // The report, if the run ended well (the exit code is 0, or the signal's) or
  // as JSON.
  void On(const RunEnded& end) override;

 private:
  Console& console_;
  bool json_;
  Patience patience_;
  RunStarted run_;
  int64_t checkpoint_ = -1;  // step of the last one
  bool evaluated_ = false;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_REPORT_CONSOLE_REPORT_H_
