// Tensors of the same names, by what is in them.
#ifndef HALFTONE_RUNTIME_COMPARE_COMPARE_TENSORS_H_
#define HALFTONE_RUNTIME_COMPARE_COMPARE_TENSORS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/compare/compare_programs.h"

namespace halftone {
namespace runtime {

// Those that both have, in `compared`'s order, as `chained`: integers, bool and
// f64 as the nearest f32. `unmatched`: the others of `compared`, then those of
// `reference`. Errors: no common name (kModel), another shape (kDiffer), by
// name.
absl::StatusOr<Comparison> CompareTensors(const std::vector<Tensor>& reference,
                                          const std::vector<Tensor>& compared);

// The arrays of a .npz file. Errors (kModel): those of ParseNpy and ZipArchive.
absl::StatusOr<std::vector<Tensor>> ReadNpz(const std::string& path);

// What a run or a checkpoint has come to: its parameters and statistics, and of
// a run's metrics.jsonl each number of its step events, and of its evals, as a
// tensor of the steps that both have: "metrics/loss". Errors (kCheckpoint,
// kModel).
struct RunTensors {
  std::vector<Tensor> reference, compared;
};
absl::StatusOr<RunTensors> ReadRuns(const std::string& reference,
                                    const std::string& compared,
                                    std::vector<std::string>* said);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COMPARE_COMPARE_TENSORS_H_
