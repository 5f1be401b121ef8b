// How a verb that fails says so.
#ifndef HALFTONE_TOOLS_COMMON_SHOW_ERROR_H_
#define HALFTONE_TOOLS_COMMON_SHOW_ERROR_H_

#include "absl/status/status.h"

namespace halftone {
namespace tools {

// Whether stdout is to have one JSON object: of an error where there is no
// report. Of this process, from the command line.
void ExpectJson(bool expected);

// Writes "error    ..." to stderr, and to stdout what a program that waits for
// JSON gets instead. Returns the exit code.
int ShowError(const absl::Status& status);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_SHOW_ERROR_H_
