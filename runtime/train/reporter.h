// What rank 0 says and writes about a run: console, metrics.jsonl, tfevents,
// summary.json. Lines are made by runtime/log.
#ifndef HALFTONE_RUNTIME_TRAIN_REPORTER_H_
#define HALFTONE_RUNTIME_TRAIN_REPORTER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/log/console.h"
#include "runtime/log/event_file.h"
#include "runtime/log/metrics_log.h"
#include "runtime/log/pulse.h"
#include "runtime/train/fetches.h"
#include "runtime/train/progress.h"
#include "runtime/train/rank_setup.h"
#include "runtime/train/report_text.h"
#include "runtime/train/run_directory.h"
#include "runtime/train/skip_names.h"
#include "runtime/train/timing.h"
#include "runtime/train/totals.h"

namespace halftone {
namespace runtime {

class Reporter {
 public:
  // `rank` outlives the reporter. Makes the run directory and opens its logs,
  // cut back to where the run resumes; says what is about to happen. Errors:
  // kModel.
  static absl::StatusOr<std::unique_ptr<Reporter>> Create(const Rank& rank);

  // A step event: `since` sums the steps since the last one.
  absl::Status Step(const StepRecord& record, const RunningLoss& since,
                    const EventTimes& times, const StepView& view);
  // Between two step events, where these are far apart: the line alone.
  bool WantsProgress() const;
  void ShowProgress(const StepRecord& record, const RunningLoss& since,
                    const EventTimes& times);
  absl::Status Skipped(const StepRecord& record, const StepView& view);
  // A step was applied whose loss is not finite, the `in_a_row`th.
  void LossNotFinite(const StepRecord& record, int64_t in_a_row);
  // `progress.eval` is new.
  absl::Status Evaluated(const Progress& progress);
  void CheckpointWritten(int64_t step) { checkpoint_ = step; }
  void Warn(const std::string& text);

  // The end: summary.json in any case, the report if it is a good one (the
  // exit code is 0, or the signal's).
  absl::Status Finish(EndOfRun end);

 private:
  explicit Reporter(const Rank& rank);
  absl::Status Open(const Rank& rank);
  // Logs that cannot be written (a full disk) do not end a training: that is
  // said when it begins and when it ends.
  void Logged(absl::Status written);
  StepEvent EventOf(const StepRecord& record, const RunningLoss& since) const;
  // Likewise the arrays of --fetch; what could not be written is lost.
  void ArraysWritten(const absl::Status& written);

  const Rank& rank_;
  const TrainConfig& config_;
  RunDirectory directory_;
  Console& console_;
  Patience patience_;
  std::unique_ptr<MetricsLog> log_;    // null: no --out
  std::unique_ptr<EventFile> events_;  // likewise
  std::vector<Fetch> fetches_;
  SkipNames skip_names_;
  int64_t bad_limit_ = 0;    // bad steps in a row that lower the scale
  int64_t checkpoint_ = -1;  // step of the last one
  bool logs_wait_ = false;   // for being written
  bool arrays_lost_ = false;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_REPORTER_H_
