// The eval entry on the ranks of this process: what Evaluate and Predict share.
#ifndef HALFTONE_RUNTIME_TRAIN_EVAL_RANKS_H_
#define HALFTONE_RUNTIME_TRAIN_EVAL_RANKS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/train/rank_setup.h"
#include "runtime/train/trainer.h"

namespace halftone {
namespace runtime {

// What rank number `r` of this process does once it is set up, with its
// evaluator. `activity` is null but for rank 0.
using EvalWork =
    std::function<absl::Status(Rank& rank, size_t r, Activity* activity)>;

// Opens the data, sets all given ranks up, a thread each, with the state that
// `config` names (none: as initialised), and has them do `work`, which others
// see as `what`. The first error of any.
absl::Status RunEvalRanks(const char* what, const Program& program,
                          const kernels::KernelRegistry& kernels,
                          const TrainConfig& config,
                          const std::vector<RankResources>& ranks,
                          const EvalWork& work);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_EVAL_RANKS_H_
