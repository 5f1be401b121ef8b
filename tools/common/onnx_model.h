// A model with its parameters as an ONNX file.
#ifndef HALFTONE_TOOLS_COMMON_ONNX_MODEL_H_
#define HALFTONE_TOOLS_COMMON_ONNX_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/base/dtype_fwd.h"

namespace halftone {
namespace tools {

struct OnnxWish {
  std::string path;  // a model, a compiled one, a run or a checkpoint
  std::string init;  // parameters from elsewhere; empty: see StartingParameters
  std::string out;
  DType dtype{};          // f32 or f16
  bool averages = false;  // of the parameters over the steps
};

struct WrittenOnnx {
  int64_t nodes = 0, casts = 0, initializers = 0, bytes = 0;
  DType dtype{};
  std::vector<std::string> inputs, outputs;
  std::string data_file;  // weights that the model does not hold; empty: none
  std::vector<std::string> said;  // of where the parameters come from
};

// Writes what `predict` would compute: the model's outputs, in FP32, or with
// the casts of its level (O1 if that has none) in f16. Errors: those of a
// compile; kUsage: a model without outputs; kModel: ops that ONNX does not
// have; kCheckpoint: parameters that do not fit.
absl::StatusOr<WrittenOnnx> WriteOnnx(const OnnxWish& wish);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_ONNX_MODEL_H_
