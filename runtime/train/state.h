// Cells to checkpoints and back.
#ifndef HALFTONE_RUNTIME_TRAIN_STATE_H_
#define HALFTONE_RUNTIME_TRAIN_STATE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/exec/executor.h"

namespace halftone {
namespace runtime {

// All cells that are not derived, in logical row-major order. If ranks have
// shards of some, the others call GiveShards meanwhile.
absl::StatusOr<std::vector<Tensor>> ReadState(Executor& executor);
absl::Status GiveShards(Executor& executor);

// Parameters alone, widened to f32: what an export holds.
std::vector<Tensor> Parameters(const Program& program,
                               const std::vector<Tensor>& tensors);

// The tensors with the averages in place of their parameters, where there are
// any.
std::vector<Tensor> Averages(const Program& program,
                             std::vector<Tensor> tensors);

struct LoadOptions {
  std::string source;  // names the file or directory in errors; empty: neither
  // Only parameters and statistics, by name; all else stays initial (--init).
  bool parameters_only = false;
  // Take the loss scale and its counters over (not if it is constant now).
  bool take_scaler = true;
  // What is missing stays initial (fine-tuning), which is said, as is what the
  // model lacks; at least one tensor is the model's.
  bool partial = false;
  // So does what has another shape.
  bool ignore_mismatched = false;
  // Parameters of a program that keeps no averages are those averages where
  // the tensors have them: what evaluation reads.
  bool averages = false;
};
// Writes tensors into the cells; dtypes are converted, which is said in
// `*said` ("33 tensors f16 -> f32"), like a scaler that is missing or left
// out. Errors (kCheckpoint) list names and shapes that do not fit.
absl::Status WriteState(const std::vector<Tensor>& tensors,
                        const LoadOptions& options, Executor& executor,
                        std::vector<std::string>* said);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_STATE_H_
