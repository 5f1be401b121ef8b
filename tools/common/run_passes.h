// Passes over a program, by name, as `halftone opt` runs them.
#ifndef HALFTONE_TOOLS_COMMON_RUN_PASSES_H_
#define HALFTONE_TOOLS_COMMON_RUN_PASSES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "passes/pipeline.h"
#include "tools/common/program_input.h"
#include "tools/reproducer/reproducer.h"

namespace halftone {
namespace tools {

// Verified before the first and after each; `flags`: taps and dumps of it
// count. A bug of a pass leaves a reproducer (bug_report.h).
absl::StatusOr<std::vector<passes::PassRun>> RunPasses(
    const std::vector<std::string>& names, const passes::CompileFlags& flags,
    ProgramInput* input);

// What the passes of a reproducer end with now.
absl::Status RunPassesAgain(const CompileInputs& inputs);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_RUN_PASSES_H_
