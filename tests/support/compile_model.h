// For tests that cross layers: a compiled model with this binary's kernels.
#ifndef HALFTONE_TESTS_SUPPORT_COMPILE_MODEL_H_
#define HALFTONE_TESTS_SUPPORT_COMPILE_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/io/compiled_model.h"
#include "graph/io/model_reader.h"
#include "passes/options/options.h"

namespace halftone {

// "models/mlp.pbtxt", "models/mnist_o1.pbtxt", {{"amp.level", "O2"}}; an empty
// strategy is one without an optimizer: forward and eval only.
absl::StatusOr<CompiledModel> CompileModel(
    const std::string& model, const std::string& strategy,
    const std::vector<passes::Override>& overrides = {});
absl::StatusOr<CompiledModel> CompileModel(
    const ModelFile& model, const passes::StrategyFile& strategy,
    const std::vector<passes::Override>& overrides = {});

}  // namespace halftone

#endif  // HALFTONE_TESTS_SUPPORT_COMPILE_MODEL_H_
