// What the system's refusals are to a user: the one place that tells want of
// memory from everything else.
#ifndef HALFTONE_GRAPH_BASE_SYSTEM_SYSTEM_ERROR_H_
#define HALFTONE_GRAPH_BASE_SYSTEM_SYSTEM_ERROR_H_

#include <exception>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "graph/base/error.h"

namespace halftone {

// "<what>: <what errno says>; <todo>" (without a todo: no "; ") of class
// `code`; kOutOfMemory where errno says that memory is short.
absl::Status SystemError(ExitCode code, int error, absl::string_view what,
                         absl::string_view todo = "");

// The same message in class `code`; want of memory keeps its own. OK stays OK.
absl::Status Reclassified(const absl::Status& status, ExitCode code);

// Whether an exception of a library says that memory or threads are short.
bool IsOutOfMemory(const std::exception& error);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_SYSTEM_SYSTEM_ERROR_H_
