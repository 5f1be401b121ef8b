// Who ended the run and why, for the console and failure.json.
#ifndef HALFTONE_RUNTIME_LAUNCH_FAILURE_REPORT_H_
#define HALFTONE_RUNTIME_LAUNCH_FAILURE_REPORT_H_

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/launch/status_page.h"

namespace halftone {
namespace runtime {

struct WaitingRank {
  int rank = 0;
  int64_t step = -1;
  std::string activity;
};

struct FailureReport {
  int attempt = 0;
  int rank = -1;               // -1: a rank of another node
  std::vector<int> elsewhere;  // then: those who are to blame, where known
  pid_t pid = -1;
  std::string device;
  int64_t step = -1;  // -1: before the first
  bool reports_steps = false;
  std::string activity;
  std::string cause;
  int signal = 0;     // that ended it, else 0
  int exit_code = 0;  // of the launcher
  std::vector<WaitingRank> waiting;
  std::string run_failure;  // what the ranks themselves say, if they do
  std::string log;
  std::vector<std::string> log_end;
};

// How a rank ended, from waitpid's status: "exit code 3 (a check failed...)",
// "signal 9 (SIGKILL); the kernel's out-of-memory killer ...".
// `oom_kills`: kills by it on this machine or in this container meanwhile.
// `is_ours`: whether it was a rank of Halftone, whose exit codes have meanings.
std::string DescribeEnd(int wait_status, int64_t oom_kills, bool is_ours);

// Kills by the out-of-memory killer so far: in this process's control group,
// else on the machine.
int64_t CountOomKills();

// The rank whose error it is that a rank ended with, by the last lines of its
// stderr: ranks that set up or end something together fail with the error of
// the first that did, "error    rank 0: ...". Nothing: its own, or none.
std::optional<int> SourceOfError(const std::deque<std::string>& log_end);

// "rank 1"; of another node "rank 5 on node 1", "ranks 4 5 on node 1", or "a
// rank of another node" where no more is known. Nodes have `ranks` each.
std::string WhoFailed(const FailureReport& report, int ranks);

// Lines for the console, which they reach through LaunchConsole::Say.
std::vector<std::string> ToLines(const FailureReport& report);
// Written atomically. False: not written, as nodes share the folder and the
// node whose rank failed has written, since `started`, what it knows better.
absl::StatusOr<bool> WriteFailureFile(const std::string& path,
                                      const FailureReport& report,
                                      MonotonicTime started);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_LAUNCH_FAILURE_REPORT_H_
