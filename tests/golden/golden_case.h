// A golden case: options, a program, and what a pass makes of it.
#ifndef HALFTONE_TESTS_GOLDEN_GOLDEN_CASE_H_
#define HALFTONE_TESTS_GOLDEN_GOLDEN_CASE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "passes/options/options.h"
#include "passes/testing/kernels.h"

namespace halftone {

struct GoldenCase {
  std::string head;    // header and program, as they stand in the file
  std::string expect;  // what stands behind "# ---- expect"
  std::vector<passes::Override> overrides;
  passes::TestTarget target;
  std::vector<std::string> fetch;    // values that keep-taps keeps
  std::vector<std::string> outputs;  // those that keep-outputs keeps
};

// Errors name file and line.
absl::StatusOr<GoldenCase> ParseGoldenCase(absl::string_view content,
                                           absl::string_view file);

// The result of `pass`, or of a group of that name, as `halftone opt` runs it,
// in the form of an expectation: the program's text,
// "unchanged" or "error: <message>".
std::string RunGoldenCase(const GoldenCase& golden, absl::string_view pass,
                          absl::string_view file);

}  // namespace halftone

#endif  // HALFTONE_TESTS_GOLDEN_GOLDEN_CASE_H_
