// What a run has trained, as it is handed on.
#ifndef HALFTONE_TOOLS_COMMON_RUN_PARAMETERS_H_
#define HALFTONE_TOOLS_COMMON_RUN_PARAMETERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/base/dtype_fwd.h"
#include "proto/strategy.pb.h"
#include "runtime/checkpoint/safetensors.h"

namespace halftone {
namespace tools {

// Errors (kUsage): what is at `path` is trained without averages.
absl::Status ExpectAverages(const std::string& path,
                            const proto::Strategy& strategy);

// Of --dtype: f32, f16 (fp16) or bf16. Errors (kUsage): another word.
absl::StatusOr<DType> ExportedDType(const std::string& text);

struct RunParameters {
  std::vector<runtime::Tensor> tensors;
  int64_t step = 0;
  bool from_copies = false;       // FP32 ones
  std::vector<std::string> said;  // checkpoints that were passed over
};

// Of the newest good checkpoint of the run at `path`, or of the checkpoint that
// it is: parameters and statistics, floats in `dtype`, under a convention's
// names (graph/zoo/source_names.h) if one is given. Errors (kCheckpoint):
// neither is there; kUsage: names, or averages, that the model does not have.
// `averages`: of the parameters over the steps, in their place.
absl::StatusOr<RunParameters> ReadRunParameters(const std::string& path,
                                                const std::string& names,
                                                DType dtype, bool averages);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_RUN_PARAMETERS_H_
