// metrics.jsonl: one JSON object per line, written as the run goes. f32 values
// in digits that read back to the same bits; nan, inf, -inf as strings. Each
// line has a step and the time of day.
#ifndef HALFTONE_RUNTIME_REPORT_METRICS_LOG_H_
#define HALFTONE_RUNTIME_REPORT_METRICS_LOG_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/report/run_observer.h"
#include "runtime/report/scale_recorder.h"

namespace halftone {
namespace runtime {

class MetricsLog : public RunObserver {
 public:
  // `keep_until` < 0: a new file. Otherwise lines of steps after it are cut
  // off (resume), so is all that is no event, and more are appended. A link is
  // not followed. Errors: kModel (cannot be written).
  static absl::StatusOr<std::unique_ptr<MetricsLog>> Open(
      const std::string& path, int64_t keep_until);
  ~MetricsLog() override;
  void On(const RunStarted& run) override;
  void On(const StepEvent& event) override;
  void On(const SkipEvent& event) override;
  // Of steps that were not skipped: a skip's line says it, too.
  void On(const ScaleEvent& event) override;
  void On(const NotFiniteEvent& event) override;
  void On(const EvalEvent& event) override;
  void On(const CheckpointEvent& event) override;
  void On(const RestartEvent& event) override;
  void On(const RunEnded& end) override;
  // What could not be written (a full disk) is kept, up to 16 MiB, and written
  // before the next line: the file never has half a line in it, and a gap only
  // beyond that.
  absl::Status Flush() override;

  // What the lines that were kept say of the loss scale.
  const ScaleRecorder& kept_scale_events() const { return kept_; }

 private:
  MetricsLog(std::string path, int fd);
  // An object without its end: the time comes last.
  void Append(absl::string_view line);

  std::string path_, pending_;
  ScaleRecorder kept_;
  int fd_;
  bool parts_known_ = true;
  bool lacks_checkpoint_ = false;  // that the run goes on from
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_REPORT_METRICS_LOG_H_
