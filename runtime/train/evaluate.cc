// Evaluate: the eval entry alone, on a state that was trained before.
#include <vector>

#include "graph/base/error.h"
#include "runtime/train/eval_ranks.h"
#include "runtime/train/trainer.h"

namespace halftone {
namespace runtime {

absl::StatusOr<EvalReport> Evaluate(const Program& program,
                                    const kernels::KernelRegistry& kernels,
                                    const TrainConfig& config,
                                    const std::vector<RankResources>& ranks) {
  if (config.init.empty() && config.out.empty()) {
    return UsageError("eval needs a run directory or tensors to evaluate");
  }
  std::vector<EvalReport> reports(ranks.size());
  const auto work = [&](Rank& rank, size_t r,
                        Activity* activity) -> absl::Status {
    HT_ASSIGN_OR_RETURN(reports[r], rank.evaluator->Run(activity));
    return absl::OkStatus();
  };
  HT_RETURN_IF_ERROR(
      RunEvalRanks("eval", program, kernels, config, ranks, work));
  return reports[0];
}

}  // namespace runtime
}  // namespace halftone
