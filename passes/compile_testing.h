// What tests of the compiler share.
#ifndef HALFTONE_PASSES_COMPILE_TESTING_H_
#define HALFTONE_PASSES_COMPILE_TESTING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/compile.h"

namespace halftone {
namespace passes {

// Compiles a model's text for a target that can do everything, verified after
// each pass.
absl::StatusOr<CompiledModel> CompileText(
    const std::string& text, const std::vector<Override>& overrides,
    const CompileFlags& flags = {.verify_each = true});

// The first note of that code; empty: none.
std::string NoteOf(const proto::CompileReport& report, const std::string& code);

// The row of that op; null: none. As long as `model` lives.
const proto::OpRow* FindOp(const CompiledModel& model, const std::string& name);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_COMPILE_TESTING_H_
