// How far a run is: equal on all ranks, kept in every checkpoint.
#ifndef HALFTONE_RUNTIME_TRAIN_PROGRESS_H_
#define HALFTONE_RUNTIME_TRAIN_PROGRESS_H_

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/train/totals.h"
#include "runtime/train/trainer.h"

namespace halftone {
namespace runtime {

struct Progress {
  // Attempted and applied steps so far.
  int64_t step = 0, applied = 0;
  // The next sample: its epoch (from 0) and the samples of all ranks that were
  // taken of that epoch.
  int64_t epoch = 0, sample = 0;
  float loss_scaling = 1;          // after the last step
  std::vector<float> part_scales;  // of parts of the loss that have scalers
  int64_t good_steps = 0, bad_steps = 0;
  RunningLoss since_event;  // since the last step event
  // Means of the first and the last step event.
  double first_loss = std::numeric_limits<double>::quiet_NaN();
  double last_loss = std::numeric_limits<double>::quiet_NaN();
  // The last eval and the best so far; steps: -1 if there was none.
  EvalReport eval;
  int64_t eval_step = -1;
  // 1: an eval was due at this step, but the run was asked to stop.
  int64_t eval_due = 0;
  double best = 0;
  int64_t best_step = -1, best_epoch = 0;

  // Takes over a step; `sample` is the position after it, of `epoch` (from 0).
  void Add(const StepRecord& record, int64_t next_epoch, int64_t next_sample);
  // Takes over an eval after the last step. Better is a higher value of
  // `metric`, or a lower loss if it is empty. True if it is the best.
  bool Add(const EvalReport& report, const std::string& metric);
};

// The manifest's free-form numbers; exact round trip.
std::map<std::string, double> ToNumbers(const Progress& progress);
// Counts are counts; errors (kModel) name the number that is none.
absl::StatusOr<Progress> FromNumbers(
    const std::map<std::string, double>& numbers);

// For the other ranks, which have not read the checkpoint.
std::string Encode(const std::map<std::string, double>& numbers);
absl::StatusOr<std::map<std::string, double>> Decode(
    const std::string& encoded);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_PROGRESS_H_
