// The one place from which verbs call the compiler.
#ifndef HALFTONE_TOOLS_COMMON_COMPILE_MODEL_H_
#define HALFTONE_TOOLS_COMMON_COMPILE_MODEL_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "graph/io/compiled_model.h"
#include "graph/io/model_reader.h"
#include "passes/compile.h"
#include "passes/options/options.h"

namespace halftone {
namespace tools {

// passes::Compile with the target's kernels and plans. `threads`: compute
// threads of a rank, whose workspaces count under train.memory_budget; 0: of
// one rank that has this machine (ThreadsPerRank). Errors: also an unknown
// target (kUsage).
absl::StatusOr<CompiledModel> CompileModel(ModelFile source,
                                           const passes::Options& options,
                                           const std::string& target,
                                           const passes::CompileFlags& flags,
                                           int threads = 0);

// The same; a bug of the compiler (kCompilerBug) leaves a folder, which its
// message names (tools/reproducer). `model`: the bytes that `source` is from,
// asked for in that case alone.
absl::StatusOr<CompiledModel> CompileOrLeaveReproducer(
    ModelFile source, const passes::Options& options, const std::string& target,
    const passes::CompileFlags& flags, int threads,
    absl::FunctionRef<absl::StatusOr<std::string>()> model);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_COMPILE_MODEL_H_
