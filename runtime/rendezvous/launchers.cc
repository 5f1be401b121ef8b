// What each launcher's variables mean.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "runtime/rendezvous/variables.h"

namespace halftone {
namespace runtime {
namespace {

using Placement = absl::StatusOr<std::optional<RankPlacement>>;

std::string OneOf(int rank, int size) {
  return absl::StrCat(rank, " of ", size);
}

// Starts a placement with rank and world size and their line.
RankPlacement Start(const std::string& source, const Variables::Pair& world,
                    const std::string& from) {
  RankPlacement place;
  place.source = source;
  place.rank = world.rank;
  place.world_size = world.size;
  place.explanation.push_back(Explain("rank", OneOf(world.rank, world.size),
                                      absl::StrCat(from, " (", source, ")")));
  return place;
}

// Sets the local rank, with its line; an error if the two do not fit the
// world.
absl::Status SetLocal(RankPlacement& place, const Variables::Pair& local,
                      const std::string& from) {
  if (local.size > place.world_size || local.rank > place.rank) {
    return UsageError("environment: ", from, ": local rank ",
                      OneOf(local.rank, local.size), " contradicts rank ",
                      OneOf(place.rank, place.world_size));
  }
  place.local_rank = local.rank;
  place.local_world_size = local.size;
  place.explanation.push_back(
      Explain("local rank", OneOf(local.rank, local.size), from));
  return absl::OkStatus();
}

absl::Status SameOrAbsent(const Variables& v, const std::string& name,
                          int expected, const std::string& other) {
  HT_ASSIGN_OR_RETURN(std::optional<int> value, v.Number(name));
  if (!value || *value == expected) return absl::OkStatus();
  return UsageError("environment: ", name, "=", *value, " contradicts ", other);
}

// fleetrun gives a list of all ranks' endpoints; where each host's ranks are
// follows from it.
absl::Status TakeEndpoints(const Variables& v, RankPlacement& place) {
  const std::vector<std::string> endpoints = absl::StrSplit(
      v.Text("PADDLE_TRAINER_ENDPOINTS"), ',', absl::SkipEmpty());
  if (static_cast<int>(endpoints.size()) != place.world_size) {
    return UsageError("environment: PADDLE_TRAINER_ENDPOINTS has ",
                      endpoints.size(),
                      " entries, PADDLE_TRAINERS_NUM=", place.world_size);
  }
  const std::string& mine = endpoints[place.rank];
  const std::string current = v.Text("PADDLE_CURRENT_ENDPOINT");
  if (!current.empty() && current != mine) {
    return UsageError("environment: PADDLE_CURRENT_ENDPOINT=", current,
                      " contradicts PADDLE_TRAINER_ID=", place.rank,
                      ", which is ", mine, " in PADDLE_TRAINER_ENDPOINTS");
  }
  Variables::Pair local = {0, 0};
  HT_ASSIGN_OR_RETURN(HostPort here,
                      ParseHostPort("PADDLE_TRAINER_ENDPOINTS", mine));
  for (int r = 0; r < place.world_size; ++r) {
    HT_ASSIGN_OR_RETURN(
        HostPort at, ParseHostPort("PADDLE_TRAINER_ENDPOINTS", endpoints[r]));
    if (at.host != here.host) continue;
    if (r < place.rank) ++local.rank;
    ++local.size;
  }
  HT_RETURN_IF_ERROR(SetLocal(place, local,
                              "ranks with this host in "
                              "PADDLE_TRAINER_ENDPOINTS"));
  HT_ASSIGN_OR_RETURN(place.master,
                      ParseHostPort("PADDLE_TRAINER_ENDPOINTS", endpoints[0]));
  place.explanation.push_back(Explain("master", ToString(place.master),
                                      "first of PADDLE_TRAINER_ENDPOINTS"));
  return absl::OkStatus();
}

absl::Status TakePaddleMaster(const Variables& v, RankPlacement& place) {
  Variables::Pair local = {place.rank, place.world_size};
  HT_ASSIGN_OR_RETURN(local.rank, v.NumberOr("PADDLE_LOCAL_RANK", local.rank));
  // Without it: as many as the local rank shows, unless all ranks are here.
  const int size = local.rank == place.rank ? place.world_size : local.rank + 1;
  HT_ASSIGN_OR_RETURN(local.size, v.NumberOr("PADDLE_LOCAL_SIZE", size));
  place.local_size_is_known = v.Has("PADDLE_LOCAL_SIZE");
  HT_RETURN_IF_ERROR(SetLocal(
      place, local, v.Show({"PADDLE_LOCAL_RANK", "PADDLE_LOCAL_SIZE"})));
  if (!v.Has("PADDLE_MASTER")) return TakeMaster(v, "fleetrun", place);
  HT_ASSIGN_OR_RETURN(place.master, ParseHostPort("environment: PADDLE_MASTER",
                                                  v.Text("PADDLE_MASTER")));
  place.explanation.push_back(
      Explain("master", ToString(place.master), v.Show({"PADDLE_MASTER"})));
  return absl::OkStatus();
}

}  // namespace

Placement FromHalftone(const Variables& v) {
  HT_ASSIGN_OR_RETURN(
      std::optional<Variables::Pair> world,
      v.RankOf(kRankVariable, kWorldSizeVariable, "halftone launch"));
  if (!world) return {std::nullopt};
  RankPlacement place = Start("halftone launch", *world,
                              v.Show({kRankVariable, kWorldSizeVariable}));
  HT_ASSIGN_OR_RETURN(
      std::optional<Variables::Pair> local,
      v.RankOf(kLocalRankVariable, kLocalWorldSizeVariable, "halftone launch"));
  HT_RETURN_IF_ERROR(
      SetLocal(place, local.value_or(*world),
               v.Show({kLocalRankVariable, kLocalWorldSizeVariable})));
  HT_ASSIGN_OR_RETURN(place.attempt, v.NumberOr(kAttemptVariable, 0));
  HT_ASSIGN_OR_RETURN(place.device, v.NumberOr(kDeviceVariable, -1));
  place.master_served = v.Text(kMasterServedVariable) == "1";
  if (!v.Has(kMasterVariable)) {
    return UsageError("environment: ", kRankVariable, " is set but ",
                      kMasterVariable, " (HOST:PORT) is not");
  }
  HT_ASSIGN_OR_RETURN(place.master, ParseHostPort(absl::StrCat("environment: ",
                                                               kMasterVariable),
                                                  v.Text(kMasterVariable)));
  place.explanation.push_back(
      Explain("master", ToString(place.master), v.Show({kMasterVariable})));
  return {std::move(place)};
}

Placement FromTorchrun(const Variables& v) {
  bool marked = false;
  for (const char* mark : {"LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
                           "TORCHELASTIC_RUN_ID"}) {
    marked = marked || v.Has(mark);
  }
  if (!marked) return {std::nullopt};
  HT_ASSIGN_OR_RETURN(std::optional<Variables::Pair> world,
                      v.RankOf("RANK", "WORLD_SIZE", "torchrun"));
  if (!world) {
    return UsageError("environment: ",
                      v.Show({"LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
                              "TORCHELASTIC_RUN_ID"}),
                      " is set but RANK and WORLD_SIZE are not (torchrun sets "
                      "all): set them too, or unset it");
  }
  RankPlacement place =
      Start("torchrun", *world, v.Show({"RANK", "WORLD_SIZE"}));
  Variables::Pair local = {0, 1};
  HT_ASSIGN_OR_RETURN(local.rank, v.NumberOr("LOCAL_RANK", 0));
  // Without LOCAL_WORLD_SIZE: all are here if the ranks agree.
  const int size = local.rank == place.rank ? place.world_size : local.rank + 1;
  HT_ASSIGN_OR_RETURN(local.size, v.NumberOr("LOCAL_WORLD_SIZE", size));
  place.local_size_is_known = v.Has("LOCAL_WORLD_SIZE");
  if (local.rank >= local.size) {
    return UsageError("environment: LOCAL_RANK=", local.rank,
                      " is not below LOCAL_WORLD_SIZE=", local.size);
  }
  HT_RETURN_IF_ERROR(
      SetLocal(place, local, v.Show({"LOCAL_RANK", "LOCAL_WORLD_SIZE"})));
  place.job_id = v.Text("TORCHELASTIC_RUN_ID");
  HT_ASSIGN_OR_RETURN(place.attempt,
                      v.NumberOr("TORCHELASTIC_RESTART_COUNT", 0));
  HT_RETURN_IF_ERROR(TakeMaster(v, "torchrun", place));
  // The agent keeps its store there, or may: whether it does depends on its
  // version, its kind of rendezvous and its flags.
  place.master_held = !place.job_id.empty() && place.master.port != 0;
  if (place.master_held) {
    place.explanation.push_back(Explain(
        "", "", "torchrun's agent has that port: the ranks use another"));
  }
  return {std::move(place)};
}

Placement FromFleetrun(const Variables& v) {
  HT_ASSIGN_OR_RETURN(
      std::optional<Variables::Pair> now,
      v.RankOf("PADDLE_GLOBAL_RANK", "PADDLE_GLOBAL_SIZE", "fleetrun"));
  std::optional<Variables::Pair> world = now;
  if (!now) {
    HT_ASSIGN_OR_RETURN(world, v.RankOf("PADDLE_TRAINER_ID",
                                        "PADDLE_TRAINERS_NUM", "fleetrun"));
  }
  if (!world) return {std::nullopt};
  RankPlacement place =
      Start("fleetrun", *world,
            now ? v.Show({"PADDLE_GLOBAL_RANK", "PADDLE_GLOBAL_SIZE"})
                : v.Show({"PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"}));
  const std::string chosen = place.explanation[0];
  HT_RETURN_IF_ERROR(SameOrAbsent(v, "PADDLE_TRAINER_ID", place.rank, chosen));
  HT_RETURN_IF_ERROR(
      SameOrAbsent(v, "PADDLE_TRAINERS_NUM", place.world_size, chosen));
  const bool endpoints = !now && v.Has("PADDLE_TRAINER_ENDPOINTS");
  HT_RETURN_IF_ERROR(endpoints ? TakeEndpoints(v, place)
                               : TakePaddleMaster(v, place));
  const std::vector<std::string> gpus =
      absl::StrSplit(v.Text("FLAGS_selected_gpus"), ',', absl::SkipEmpty());
  if (gpus.size() == 1) {
    HT_ASSIGN_OR_RETURN(place.device, v.NumberOr("FLAGS_selected_gpus", -1));
    place.explanation.push_back(
        Explain("device", gpus[0], v.Show({"FLAGS_selected_gpus"})));
  }
  return {std::move(place)};
}

Placement FromOpenMpi(const Variables& v) {
  HT_ASSIGN_OR_RETURN(
      std::optional<Variables::Pair> world,
      v.RankOf("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI"));
  if (!world) return {std::nullopt};
  RankPlacement place =
      Start("Open MPI", *world,
            v.Show({"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}));
  HT_ASSIGN_OR_RETURN(std::optional<Variables::Pair> local,
                      v.RankOf("OMPI_COMM_WORLD_LOCAL_RANK",
                               "OMPI_COMM_WORLD_LOCAL_SIZE", "Open MPI"));
  HT_RETURN_IF_ERROR(SetLocal(
      place, local.value_or(*world),
      v.Show({"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"})));
  for (const char* id :
       {"OMPI_MCA_orte_hnp_uri", "OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"}) {
    if (place.job_id.empty() && v.Has(id)) {
      place.job_id = absl::StrCat("ompi ", v.Text(id), " ",
                                  v.Text("OMPI_MCA_ess_base_jobid"));
    }
  }
  HT_RETURN_IF_ERROR(TakeMaster(v, "mpirun", place));
  return {std::move(place)};
}

Placement FromMpich(const Variables& v) {
  HT_ASSIGN_OR_RETURN(std::optional<Variables::Pair> world,
                      v.RankOf("PMI_RANK", "PMI_SIZE", "MPICH"));
  if (!world) return {std::nullopt};
  RankPlacement place =
      Start("MPICH", *world, v.Show({"PMI_RANK", "PMI_SIZE"}));
  HT_ASSIGN_OR_RETURN(std::optional<Variables::Pair> local,
                      v.RankOf("MPI_LOCALRANKID", "MPI_LOCALNRANKS", "MPICH"));
  HT_RETURN_IF_ERROR(
      SetLocal(place, local.value_or(*world),
               local ? v.Show({"MPI_LOCALRANKID", "MPI_LOCALNRANKS"})
                     : "no MPI_LOCALRANKID: all ranks are taken to be here"));
  place.local_size_is_known = local.has_value();
  if (v.Has("PMI_PORT")) place.job_id = "pmi " + v.Text("PMI_PORT");
  HT_RETURN_IF_ERROR(TakeMaster(v, "mpiexec", place));
  return {std::move(place)};
}

}  // namespace runtime
}  // namespace halftone
