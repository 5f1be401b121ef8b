// Finds out which rank this process is from the variables that launchers set:
// ours, torchrun, fleetrun (both generations), Open MPI, MPICH, Slurm, and
// Kubeflow's operators. A pure function of the variables; the decision is told.
#ifndef HALFTONE_RUNTIME_RENDEZVOUS_ENVIRONMENT_H_
#define HALFTONE_RUNTIME_RENDEZVOUS_ENVIRONMENT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/rendezvous/socket.h"

namespace halftone {
namespace runtime {

using Environment = std::map<std::string, std::string>;
Environment CurrentEnvironment();

// Ranks of a run, and so nodes.
inline constexpr int kMostRanks = 4096;

// What our launcher sets for its ranks.
inline constexpr char kRankVariable[] = "HALFTONE_RANK";
inline constexpr char kWorldSizeVariable[] = "HALFTONE_WORLD_SIZE";
inline constexpr char kLocalRankVariable[] = "HALFTONE_LOCAL_RANK";
inline constexpr char kLocalWorldSizeVariable[] = "HALFTONE_LOCAL_WORLD_SIZE";
inline constexpr char kMasterVariable[] = "HALFTONE_MASTER";  // host:port
// "1": the launcher listens there; else rank 0 does.
inline constexpr char kMasterServedVariable[] = "HALFTONE_MASTER_SERVED";
inline constexpr char kDeviceVariable[] = "HALFTONE_DEVICE";    // its ordinal
inline constexpr char kAttemptVariable[] = "HALFTONE_ATTEMPT";  // 0, 1, ...
// The run's shared secret, or a file of mode 0600 that holds it.
inline constexpr char kTokenVariable[] = "HALFTONE_TOKEN";
inline constexpr char kTokenFileVariable[] = "HALFTONE_TOKEN_FILE";

struct RankPlacement {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  // Where the ranks meet. Without a host they are all on this machine and
  // find each other by `job_id` (which may be empty: by the launcher's pid).
  HostPort master;
  std::string job_id;
  std::string rank_variable;   // in which the launcher gave the rank
  bool master_served = false;  // our launcher's store listens there already
  // Another launcher's own server (torchrun's agent) has that port.
  bool master_held = false;
  bool local_size_is_known = true;  // the launcher told it
  int attempt = 0;
  int device = -1;     // the device that the launcher chose; -1: local_rank
  std::string source;  // "halftone launch", "torchrun", ..., or "none"
  // What was found where, a line each, for --explain.
  std::vector<std::string> explanation;
};

// One rank of one if no launcher's variables are there. Half-set or
// contradictory ones are errors (kUsage) that name them.
absl::StatusOr<RankPlacement> FindRank(const Environment& env);

// For `launch`: the nodes, where an operator or batch system started one
// launcher on each.
struct NodePlacement {
  int nodes = 1;
  int node_rank = 0;
  int ranks_per_node = 0;  // 0: not given
  HostPort master;         // without a host: not given
  std::string source;      // "none" if nothing was found
  std::vector<std::string> explanation;
};
// An error (kUsage) also if this process is a rank already.
absl::StatusOr<NodePlacement> FindNode(const Environment& env);

// "node[01-03,07],gpu5" -> node01 node02 node03 node07 gpu5 (Slurm's form).
absl::StatusOr<std::vector<std::string>> ExpandNodeList(absl::string_view list);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_RENDEZVOUS_ENVIRONMENT_H_
