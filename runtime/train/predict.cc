#include "runtime/train/predict.h"

#include <utility>
#include <vector>

#include "graph/base/error.h"
#include "runtime/train/eval_ranks.h"

namespace halftone {
namespace runtime {

absl::StatusOr<Predictions> Predict(const Program& program,
                                    const kernels::KernelRegistry& kernels,
                                    const TrainConfig& config,
                                    const std::vector<RankResources>& ranks) {
  Predictions predictions;
  const auto work = [&](Rank& rank, size_t r,
                        Activity* activity) -> absl::Status {
    const int64_t samples = rank.evaluator->samples();
    const bool in_one_step = !HasSamples(rank.data().specs) ||
                             (samples <= rank.sampler.batch &&
                              (samples == 1 || rank.sampler.world_size == 1));
    HT_ASSIGN_OR_RETURN(
        PredictionGatherer gatherer,
        PredictionGatherer::Create(program, in_one_step, &rank.communicator()));
    HT_RETURN_IF_ERROR(rank.evaluator
                           ->Run(activity,
                                 [&gatherer](const StepView& view) {
                                   return gatherer.Add(view);
                                 })
                           .status());
    if (r == 0) {
      predictions.samples = samples;
      predictions.values = std::move(gatherer).Take();
      predictions.classes = rank.start.classes.empty()
                                ? rank.data().opened.classes
                                : rank.start.classes;
    }
    return absl::OkStatus();
  };
  HT_RETURN_IF_ERROR(
      RunEvalRanks("predict", program, kernels, config, ranks, work));
  return predictions;
}

}  // namespace runtime
}  // namespace halftone
