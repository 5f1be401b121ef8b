// What a step leaves behind on the host, equal on all ranks, and its sums.
#ifndef HALFTONE_RUNTIME_TRAIN_TOTALS_H_
#define HALFTONE_RUNTIME_TRAIN_TOTALS_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "graph/ir/program.h"
#include "runtime/exec/executor.h"
#include "runtime/report/step_events.h"

namespace halftone {
namespace runtime {

// The scaler of a part of the loss, in one step.
struct PartScale {
  bool not_finite = false;  // the part's gradients
  float before = 1, after = 1;
  int64_t bad_steps = 0;
};

// One attempted step: its results of the whole world.
struct StepRecord {
  int64_t step = 0;                // attempted steps so far, this one included
  int64_t epoch = 0;               // 1, 2, ...
  double loss_sum = 0, count = 0;  // sum of n_r * loss, sum of n_r
  bool found_inf = false;
  int64_t first_bad = -1;  // check_finite's FirstBad
  // With what the step ran.
  float lr = 0, scale_before = 1;
  // After it.
  float grad_norm = 0;
  float loss_scaling = 1;  // the smallest, where parts of the loss have scalers
  std::vector<PartScale> parts;  // if they have
  int64_t good_steps = 0, bad_steps = 0, applied = 0;
  double stopped = 0;  // sum of all ranks' @stop

  // The part that a rejected step is about: of those that were not finite the
  // one with the largest scale, which is the furthest from its floor. -1: there
  // is one scale.
  int PartAtFault() const;

  // NaN if nothing was counted.
  double loss() const {
    return count > 0 ? loss_sum / count
                     : std::numeric_limits<double>::quiet_NaN();
  }
  // That of a step in which nothing was counted (all is masked) is.
  bool loss_is_finite() const {
    return std::isfinite(loss_sum) && std::isfinite(count);
  }
};

// Reads a train step's results; `scale_before` is the loss scale it ran with,
// `part_scales` are those of the parts that have their own.
StepRecord ReadStep(const StepView& view, int64_t step, int64_t epoch,
                    float scale_before, absl::Span<const float> part_scales);
// The parts of the loss of that step, if it has any, in the model's order.
std::vector<PartLoss> PartsOf(const Program& program, const StepRecord& record,
                              const StepView& view);

// The mean loss over the samples of all steps whose loss is finite, in f64: a
// step that was skipped has one, too, as a rule.
struct RunningLoss {
  double sum = 0, count = 0;
  int64_t skipped = 0;     // steps that were not applied
  int64_t not_finite = 0;  // steps left out

  void Add(const StepRecord& record) {
    skipped += record.found_inf;
    if (!record.loss_is_finite()) {
      ++not_finite;
      return;
    }
    sum += record.loss_sum;
    count += record.count;
  }
  // NaN if nothing was counted.
  double mean() const {
    return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
  }
};

// What ranks ask of each other through the @stop feed. Any rank may ask for
// the end (1 each); the other two are rank 0's alone, so that the sum tells
// them apart for up to 2^13 ranks in f32.
inline constexpr float kAskStop = 1;
inline constexpr float kAskCheckpoint = 1.0f / 1024;
inline constexpr float kAskEval = 2.0f / 1024;

struct Asked {
  bool stop = false, checkpoint = false, eval = false;
  bool any() const { return stop || checkpoint || eval; }
};
Asked WhatIsAsked(double stopped);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_TOTALS_H_
