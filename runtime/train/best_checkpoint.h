// Which checkpoint of a run did best in its evals.
#ifndef HALFTONE_RUNTIME_TRAIN_BEST_CHECKPOINT_H_
#define HALFTONE_RUNTIME_TRAIN_BEST_CHECKPOINT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/checkpoint.h"

namespace halftone {
namespace runtime {

// The step of the best eval so far, as a checkpoint knows it; -1: none.
int64_t BestStep(const Manifest& manifest);

// The checkpoint (ckpt/step-N) of a run directory's best eval, as its newest
// sound one knows it. Errors (kCheckpoint): no eval was made, or none of its
// checkpoints is of that step.
absl::StatusOr<std::string> BestCheckpoint(const std::string& run);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_BEST_CHECKPOINT_H_
