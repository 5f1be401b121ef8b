// Rank 0's events: filled in as the loop goes on, and told to those who show
// and keep them.
#ifndef HALFTONE_RUNTIME_TRAIN_REPORTER_H_
#define HALFTONE_RUNTIME_TRAIN_REPORTER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/profile/profile.h"
#include "runtime/report/run_report.h"
#include "runtime/report/scale_recorder.h"
#include "runtime/train/fetches.h"
#include "runtime/train/progress.h"
#include "runtime/train/rank_setup.h"
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

  // A step event: `since` sums the steps since the last one. `fetches`: it
  // shows what was fetched.
  void Step(const StepRecord& record, const RunningLoss& since,
            const EventTimes& times, const StepView& view, bool fetches);
  // After each step between two step events, which may be far apart.
  void ShowProgress(const StepRecord& record, const RunningLoss& since,
                    const EventTimes& times);
  void Skipped(const StepRecord& record, const StepView& view);
  // After a step that was applied: says which loss scales are others.
  void ScalesChanged(const StepRecord& record);
  // A step was applied whose loss is not finite, the `in_a_row`th.
  void LossNotFinite(const StepRecord& record, int64_t in_a_row);
  // `progress.eval` is new.
  void Evaluated(const Progress& progress);
  void CheckpointWritten(const Progress& progress);
  void Warn(const std::string& text) { report_.Emit(WarningEvent{text}); }

  // The end, and the trace if one was asked for. Returns what could not be
  // written; `exit_code` is the run's without that.
  absl::Status Finish(const RunTimes& times, const Profile* profile, int signal,
                      int exit_code);

 private:
  explicit Reporter(const Rank& rank);
  absl::Status Open();
  void Record(ScaleEvent event);
  // Arrays of --fetch that cannot be written are lost: said when it begins and
  // when it ends.
  void ArraysWritten(const absl::Status& written);

  const Rank& rank_;
  const TrainConfig& config_;
  RunReport report_;
  std::vector<Fetch> fetches_;
  SkipNames skip_names_;
  ScaleRecorder scale_events_;
  bool arrays_lost_ = false;
  FetchCost fetch_cost_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_REPORTER_H_
