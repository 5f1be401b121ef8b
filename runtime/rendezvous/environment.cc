#include "runtime/rendezvous/environment.h"

#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "runtime/rendezvous/variables.h"

namespace halftone {
namespace runtime {
namespace {

using Source =
    absl::StatusOr<std::optional<RankPlacement>> (*)(const Variables&);

struct Launcher {
  const char* name;
  const char* rank;  // the variable that shows its presence
  Source source;
};

// Innermost first: torchrun may run under srun or mpirun, not the reverse.
constexpr Launcher kLaunchers[] = {
    {"halftone launch", kRankVariable, FromHalftone},
    {"torchrun", "LOCAL_RANK", FromTorchrun},
    {"fleetrun", "PADDLE_TRAINER_ID", FromFleetrun},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", FromOpenMpi},
    {"MPICH", "PMI_RANK", FromMpich},
    {"Slurm", "SLURM_PROCID", FromSlurm},
};

// The first port of PET_MASTER_PORT's own default.
constexpr int kDefaultNodePort = 29500;

absl::Status TakeNodeMaster(const Variables& v, NodePlacement& node) {
  for (const std::string prefix : {"PET_", ""}) {
    const std::string host = v.Text(prefix + "MASTER_ADDR");
    if (host.empty()) continue;
    HT_ASSIGN_OR_RETURN(node.master.port,
                        v.PortOr(prefix + "MASTER_PORT", kDefaultNodePort));
    node.master.host = host;
    node.explanation.push_back(Explain("master", ToString(node.master),
                                       prefix + "MASTER_ADDR, MASTER_PORT"));
    return absl::OkStatus();
  }
  const std::string endpoint = v.Text("PET_RDZV_ENDPOINT");
  if (endpoint.empty()) return absl::OkStatus();
  const std::string full = absl::StrContains(endpoint, ':')
                               ? endpoint
                               : absl::StrCat(endpoint, ":", kDefaultNodePort);
  HT_ASSIGN_OR_RETURN(node.master,
                      ParseHostPort("environment: PET_RDZV_ENDPOINT", full));
  node.explanation.push_back(
      Explain("master", ToString(node.master), v.Show({"PET_RDZV_ENDPOINT"})));
  return absl::OkStatus();
}

// What one rank per node amounts to.
absl::StatusOr<RankPlacement> RankOfNode(const NodePlacement& node) {
  if (node.ranks_per_node > 1) {
    return UsageError(
        "environment: PET_NPROC_PER_NODE=", node.ranks_per_node,
        " asks for several ranks on this node, which this process cannot be: "
        "start it with `halftone launch`");
  }
  RankPlacement place;
  place.rank = node.node_rank;
  place.world_size = node.nodes;
  place.master = node.master;
  place.source = node.source;
  place.explanation = node.explanation;
  if (node.nodes > 1 && node.master.host.empty()) {
    return UsageError("environment: ", node.nodes,
                      " nodes, but MASTER_ADDR is not set");
  }
  return place;
}

}  // namespace

Environment CurrentEnvironment() {
  Environment env;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == absl::string_view::npos) continue;
    env.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return env;
}

absl::StatusOr<std::optional<NodePlacement>> FromNodeVariables(
    const Variables& v) {
  NodePlacement node;
  // PET_*: torchrun's flags as the operator sets them, for each node.
  HT_ASSIGN_OR_RETURN(std::optional<Variables::Pair> place,
                      v.RankOf("PET_NODE_RANK", "PET_NNODES", "the operator"));
  node.source = "Kubeflow (PET_*)";
  std::string from = v.Show({"PET_NODE_RANK", "PET_NNODES"});
  if (!place) {
    HT_ASSIGN_OR_RETURN(place, v.RankOf("RANK", "WORLD_SIZE", "an operator"));
    node.source = "RANK and WORLD_SIZE";
    from = absl::StrCat(v.Show({"RANK", "WORLD_SIZE"}),
                        " without LOCAL_RANK: taken as the node's, one rank "
                        "on each unless `launch` makes more");
  }
  if (!place) return {std::nullopt};
  node.nodes = place->size;
  node.node_rank = place->rank;
  node.explanation.push_back(
      Explain("node", absl::StrCat(place->rank, " of ", place->size), from));
  const std::string ranks = v.Text("PET_NPROC_PER_NODE");
  if (ranks != "auto" && ranks != "gpu" && ranks != "cpu") {
    HT_ASSIGN_OR_RETURN(node.ranks_per_node,
                        v.NumberOr("PET_NPROC_PER_NODE", 0));
  }
  HT_RETURN_IF_ERROR(TakeNodeMaster(v, node));
  return {std::move(node)};
}

absl::StatusOr<RankPlacement> FindRank(const Environment& env) {
  const Variables v(env);
  std::optional<RankPlacement> found;
  for (const Launcher& launcher : kLaunchers) {
    if (found) {
      if (v.Has(launcher.rank)) {
        found->explanation.push_back(
            Explain("not used", launcher.name, v.Show({launcher.rank})));
      }
      continue;
    }
    HT_ASSIGN_OR_RETURN(found, launcher.source(v));
    if (found) found->rank_variable = launcher.rank;
  }
  if (found) return *std::move(found);
  HT_ASSIGN_OR_RETURN(std::optional<NodePlacement> node, FromNodeVariables(v));
  if (node) return RankOfNode(*node);
  RankPlacement alone;
  alone.source = "none";
  alone.explanation.push_back(
      Explain("rank", "0 of 1", "no launcher's variables are set"));
  return alone;
}

absl::StatusOr<NodePlacement> FindNode(const Environment& env) {
  const Variables v(env);
  HT_ASSIGN_OR_RETURN(std::optional<NodePlacement> node, FromNodeVariables(v));
  for (const Launcher& launcher : kLaunchers) {
    const std::string name = launcher.name;
    HT_ASSIGN_OR_RETURN(std::optional<RankPlacement> rank, launcher.source(v));
    if (!rank || rank->world_size == 1) continue;
    // A batch script that Slurm runs once, or srun with one task per node.
    const bool one_per_node = rank->local_world_size == 1;
    if (name == "Slurm" && !v.Has("SLURM_STEP_NUM_TASKS")) continue;
    if (!one_per_node || name == "halftone launch") {
      return UsageError("launch: this process is rank ", rank->rank, " of ",
                        rank->world_size, " already (", rank->source,
                        "): give `run` to ", rank->source,
                        ", or start one `launch` per machine");
    }
    NodePlacement place;
    place.nodes = rank->world_size;
    place.node_rank = rank->rank;
    place.master = rank->master;
    place.source = rank->source;
    place.explanation = rank->explanation;
    return place;
  }
  if (node) return *std::move(node);
  NodePlacement alone;
  alone.source = "none";
  alone.explanation.push_back(
      Explain("node", "0 of 1", "no launcher's variables are set"));
  return alone;
}

}  // namespace runtime
}  // namespace halftone
