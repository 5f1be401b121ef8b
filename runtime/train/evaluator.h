// Runs the eval entry over a data set, each sample once, on all ranks
// together.
#ifndef HALFTONE_RUNTIME_TRAIN_EVALUATOR_H_
#define HALFTONE_RUNTIME_TRAIN_EVALUATOR_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/data/batch_reader.h"
#include "runtime/exec/executor.h"
#include "runtime/log/pulse.h"
#include "runtime/train/bindings.h"
#include "runtime/train/feeds.h"
#include "runtime/train/step_totals.h"
#include "runtime/train/trainer.h"

namespace halftone {
namespace runtime {

class Evaluator {
 public:
  // Prepares the entry. `data`, `specs` and `executor` outlive the evaluator.
  // `sampler` and `merged_steps` are those of training, as EvalSampler takes
  // them; order and tail are its own. Of shards each rank runs one at a time,
  // and the sums are the same bits on any number of ranks that divides their
  // number.
  static absl::StatusOr<std::unique_ptr<Evaluator>> Create(
      const Dataset* data, const std::vector<FeedSpec>& specs,
      const SamplerOptions& sampler, int64_t merged_steps, int readers,
      Executor* executor);

  // A collective; equal on all ranks, since the entry reduces its totals.
  // `activity` may be null, and so `on_step`, which sees the results of each
  // step, in order.
  using OnStep = std::function<absl::Status(const StepView&)>;
  absl::StatusOr<EvalReport> Run(Activity* activity,
                                 const OnStep& on_step = nullptr);
  // Of all ranks.
  int64_t samples() const { return sampler_.size; }

 private:
  Evaluator(const Dataset* data, const std::vector<FeedSpec>& specs,
            const SamplerOptions& sampler, int64_t merged_steps, int readers,
            Executor* executor);
  absl::Status ReadOne(int64_t ticket, const OnStep& on_step,
                       StepTotals* totals);
  EvalReport ReportOf(const std::vector<double>& totals) const;

  const Dataset* data_;
  const std::vector<FeedSpec>& specs_;
  SamplerOptions sampler_;
  int readers_;
  Executor* executor_;
  Bindings bindings_;
  ImplicitFeeds implicit_;
  FeedList feeds_;
  // Results of the entry that are summed over its steps, in ReportOf's order.
  std::vector<std::string> summed_;
  int64_t steps_of_group_ = 1;  // see StepTotals
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_EVALUATOR_H_
