// Strategies as text, for the tests of this folder.
#ifndef HALFTONE_PASSES_OPTIONS_OPTIONS_TESTING_H_
#define HALFTONE_PASSES_OPTIONS_OPTIONS_TESTING_H_

#include <string>
#include <vector>

#include "graph/base/error.h"
#include "passes/options/options.h"

namespace halftone {
namespace passes {

absl::StatusOr<Options> Resolve(const std::string& content,
                                const std::vector<Override>& overrides = {},
                                const std::string& file = "dir/s.pbtxt");

// The defaults where it fails, and a failure of the test.
Options MustResolve(const std::string& content,
                    const std::vector<Override>& overrides = {});

// Expects an error that contains `message`.
void ExpectError(const std::string& content, const std::string& message,
                 ExitCode code = ExitCode::kModel,
                 const std::vector<Override>& overrides = {});

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_OPTIONS_OPTIONS_TESTING_H_
