// The parameters that a run or an eval would begin with, without either.
#ifndef HALFTONE_RUNTIME_TRAIN_STARTING_PARAMETERS_H_
#define HALFTONE_RUNTIME_TRAIN_STARTING_PARAMETERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/train/trainer.h"

namespace halftone {
namespace runtime {

// Cells in logical row-major order, in their dtypes: those of `config.init`,
// else of the newest checkpoint of `config.out`, else as initialised with the
// strategy's seed. What is to be said of where they come from (damaged
// checkpoints, whose names they have) goes into `*said`. Errors (kCheckpoint):
// those of ReadAnyState and WriteState. `averages`: those of the steps, where
// there are any, in place of the parameters.
absl::StatusOr<std::vector<Tensor>> StartingParameters(
    const Program& program, const kernels::KernelRegistry& kernels,
    const TrainConfig& config, const RankResources& rank, bool averages,
    std::vector<std::string>* said);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_STARTING_PARAMETERS_H_
