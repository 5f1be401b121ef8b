// Work that may end the process, in a child of it.
#ifndef HALFTONE_GRAPH_BASE_SYSTEM_IN_CHILD_H_
#define HALFTONE_GRAPH_BASE_SYSTEM_IN_CHILD_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace halftone {

struct EndOfChild {
  std::string said;     // by the child; empty: nothing
  int wait_status = 0;  // of waitpid: how it ended
};
// `say` hands a text to this process; it may be called from wherever the work
// ends.
using Say = absl::FunctionRef<void(const std::string& text)>;

// Runs `work` in a child process, which exits with 0 behind it. It writes to
// no console and leaves no core; after `seconds` it ends by SIGALRM. The
// calling thread is the only one in it. Errors (kDevice): there is none to be
// had.
absl::StatusOr<EndOfChild> RunInChild(unsigned seconds,
                                      absl::FunctionRef<void(Say say)> work);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_SYSTEM_IN_CHILD_H_
