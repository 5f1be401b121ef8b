// Starts a program as a child that cannot outlive its parent.
#ifndef HALFTONE_RUNTIME_LAUNCH_CHILD_PROCESS_H_
#define HALFTONE_RUNTIME_LAUNCH_CHILD_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/rendezvous/environment.h"
#include "runtime/rendezvous/socket.h"

namespace halftone {
namespace runtime {

// The path of a command, which is one or is looked up in PATH; an error
// (kUsage) if it is not there or cannot be executed.
absl::StatusOr<std::string> FindProgram(const std::string& name,
                                        const Environment& env);

struct ChildOptions {
  std::vector<std::string> command;  // command[0] is looked up in PATH
  Environment env;
  // A file that stays open in the child under its number; -1: none.
  int kept_fd = -1;
};

// A child is the leader of a process group of its own, with default signal
// handlers, no signals blocked, nothing to read on stdin, and is killed when
// the calling thread ends.
struct ChildProcess {
  pid_t pid = -1;  // and process group
  Socket out;      // ends of its stdout and stderr to read from, not blocking
  Socket err;
};

// Errors of FindProgram, too.
absl::StatusOr<ChildProcess> StartChild(const ChildOptions& options);

// Of what waitpid says of an ended child: 128 + n for signal n.
int ExitCodeOfWait(int wait_status);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_LAUNCH_CHILD_PROCESS_H_
