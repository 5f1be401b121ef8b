// What a launch comes to once flags and environment are resolved.
#ifndef HALFTONE_RUNTIME_LAUNCH_LAUNCH_PLAN_H_
#define HALFTONE_RUNTIME_LAUNCH_LAUNCH_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/launch/launcher.h"
#include "runtime/rendezvous/socket.h"

namespace halftone {
namespace runtime {

struct LaunchPlan {
  int nodes = 1;
  int node_rank = 0;
  int ranks = 1;    // on this node; the same on all
  HostPort master;  // port 0: random, on the loopback
  std::string token;
  bool token_is_new = false;  // made for this run
  std::string token_file;     // that holds it; empty: none
  // Entries for CUDA_VISIBLE_DEVICES by local rank; empty: CPU.
  std::vector<std::string> gpus;
  int omp_threads = 1;
  int readers = 0;  // per rank; 0: the command has none, or says no number
  std::string out;  // the command's --out; empty: none
  std::string log_dir;
  bool log_dir_is_named = false;    // by --log-dir
  bool log_dir_is_pattern = false;  // of mkdtemp
  int first_log_number = 0;         // K of <log_dir>/attempt-K, then K + 1 ...
  std::string failure_file;
  std::vector<std::string> explanation;

  int world_size() const { return nodes * ranks; }
  int rank(int local_rank) const { return node_rank * ranks + local_rank; }
};

// `cores`: that this process may use; `addresses`: of this machine, for --ips.
absl::StatusOr<LaunchPlan> MakeLaunchPlan(
    const LaunchOptions& options, const Environment& env, int cores,
    const std::vector<std::string>& addresses);

inline constexpr char kAttemptLogs[] = "attempt-";
std::string FailureFileIn(const std::string& directory);

// Numeric addresses of this machine's interfaces.
std::vector<std::string> OwnAddresses();

// The command that starts node `node_rank`, with the token's file but without
// the token, to be pasted into a shell there.
std::string CommandForNode(const LaunchOptions& options, const LaunchPlan& plan,
                           int node_rank);

// The variables of one rank, on top of `env`. `attempt` counts restarts.
Environment RankEnvironment(const LaunchPlan& plan, const Environment& env,
                            int local_rank, int attempt,
                            const HostPort& master);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_LAUNCH_LAUNCH_PLAN_H_
