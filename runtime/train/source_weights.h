// Weights under the names of where a zoo model was published
// (graph/zoo/source_names.h).
#ifndef HALFTONE_RUNTIME_TRAIN_SOURCE_WEIGHTS_H_
#define HALFTONE_RUNTIME_TRAIN_SOURCE_WEIGHTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/ir/program.h"
#include "runtime/checkpoint/safetensors.h"

namespace halftone {
namespace runtime {

// The model's parameters and statistics under a convention's names and in its
// orders of dims. Errors (kUsage) are those of SourceNames.
absl::StatusOr<std::vector<Tensor>> ToSourceNames(absl::string_view convention,
                                                  const Program& program,
                                                  std::vector<Tensor> tensors);

// The other way: where more of the model's tensors are there under a
// convention's names than under the model's own, they get those. Returns the
// convention; empty: none.
std::string TakeSourceNames(const Program& program,
                            std::vector<Tensor>* tensors);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_SOURCE_WEIGHTS_H_
