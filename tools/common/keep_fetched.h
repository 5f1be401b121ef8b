// What --fetch asks for, kept by the compiler.
#ifndef HALFTONE_TOOLS_COMMON_KEEP_FETCHED_H_
#define HALFTONE_TOOLS_COMMON_KEEP_FETCHED_H_

#include "absl/status/status.h"
#include "graph/io/compiled_model.h"
#include "runtime/train/trainer.h"

namespace halftone {
namespace tools {

// Where train computes a fetched value only inside a fusion, or no longer (it
// was folded, shared or needed by nobody), compiles the model again from the
// source kept in it with the value as a result. A note says so. Globs in
// `config->fetches` become what they match. `threads`: as CompileModel takes
// them. Errors: kUsage (no such value).
absl::Status KeepFetched(CompiledModel* model, int threads,
                         runtime::TrainConfig* config);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_KEEP_FETCHED_H_
