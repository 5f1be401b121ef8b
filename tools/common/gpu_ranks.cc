#include "tools/common/gpu_ranks.h"

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "runtime/collective/staged_communicator.h"
#include "runtime/gpu/choose_gpus.h"
#include "runtime/gpu/gpu_library.h"
#include "tools/common/command_line.h"

namespace halftone {
namespace tools {
namespace {

using Communicators = std::vector<std::unique_ptr<runtime::Communicator>>;

// CUDA's ordinals of --gpus; without it the first ones.
absl::StatusOr<std::vector<int>> Ordinals(const RankFlags& flags,
                                          const runtime::Environment& env) {
  std::vector<int> gpus;
  if (flags.gpus.empty()) {
    gpus.resize(std::max(flags.ranks, 1));
    std::iota(gpus.begin(), gpus.end(), 0);
    return gpus;
  }
  HT_RETURN_IF_ERROR(ParseNumbers("--gpus", flags.gpus, &gpus));
  if (flags.ranks > 0 && flags.ranks != static_cast<int>(gpus.size())) {
    return UsageError("--ranks ", flags.ranks, " but ", gpus.size(),
                      " ids in --gpus: one rank runs on each");
  }
  return runtime::OrdinalsOf(gpus, env);
}

// An error that says which flag asked for a GPU.
absl::Status AskedBy(const RankFlags& flags, const absl::Status& status) {
  if (status.ok() || flags.gpus.empty()) return status;
  return Annotate(status, absl::StrCat("--gpus ", flags.gpus));
}

absl::Status AddDevice(const runtime::GpuLibrary& library, int ordinal,
                       LocalRanks* local) {
  HT_ASSIGN_OR_RETURN(auto device, library->make_device(ordinal));
  local->devices.push_back(std::move(device));
  return absl::OkStatus();
}

// Whether an id came twice: NCCL connects no ranks of one GPU.
bool Share(std::vector<int> ordinals) {
  std::sort(ordinals.begin(), ordinals.end());
  return std::adjacent_find(ordinals.begin(), ordinals.end()) != ordinals.end();
}

absl::Status ConnectThroughHost(const RankFlags& flags, LocalRanks* local) {
  Communicators hosts = runtime::MakeInProcessCommunicators(
      static_cast<int>(local->devices.size()), absl::Seconds(flags.timeout));
  for (size_t r = 0; r < hosts.size(); ++r) {
    HT_ASSIGN_OR_RETURN(
        auto staged, runtime::MakeStagedCommunicator(std::move(hosts[r]),
                                                     local->devices[r].get()));
    local->communicators.push_back(std::move(staged));
  }
  return absl::OkStatus();
}

// NCCL's set-up is a collective: a thread per rank.
absl::Status ConnectThreads(const runtime::GpuLibrary& library,
                            const RankFlags& flags, LocalRanks* local) {
  const int ranks = static_cast<int>(local->devices.size());
  Communicators hosts =
      runtime::MakeInProcessCommunicators(ranks, absl::Seconds(flags.timeout));
  local->communicators.resize(ranks);
  std::vector<absl::Status> statuses(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      auto connected = library->connect(
          std::move(hosts[r]), local->devices[r].get(),
          absl::Seconds(flags.connect_timeout), absl::Seconds(flags.timeout));
      statuses[r] = connected.status();
      if (connected.ok()) local->communicators[r] = *std::move(connected);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) HT_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

absl::Status TryToAddThreadRanks(const RankFlags& flags,
                                 const runtime::Environment& env,
                                 LocalRanks* local) {
  HT_ASSIGN_OR_RETURN(const std::vector<int> ordinals, Ordinals(flags, env));
  HT_ASSIGN_OR_RETURN(const auto* library, runtime::GpuLibrary::Open());
  local->kernels = &library->kernels();
  for (int ordinal : ordinals) {
    HT_RETURN_IF_ERROR(AddDevice(*library, ordinal, local));
  }
  if (Share(ordinals)) return ConnectThroughHost(flags, local);
  if (ordinals.size() > 1) return ConnectThreads(*library, flags, local);
  local->communicators.push_back(runtime::MakeSingleCommunicator());
  return absl::OkStatus();
}

}  // namespace

absl::Status AddGpuThreadRanks(const RankFlags& flags,
                               const runtime::Environment& env,
                               LocalRanks* local) {
  return AskedBy(flags, TryToAddThreadRanks(flags, env, local));
}

absl::Status AddLaunchedGpuRank(const RankFlags& flags,
                                const runtime::RankPlacement& place,
                                const runtime::Environment& env,
                                std::unique_ptr<runtime::Communicator> host,
                                LocalRanks* local) {
  HT_ASSIGN_OR_RETURN(const int ordinal, runtime::OrdinalOf(place, env));
  HT_ASSIGN_OR_RETURN(const auto* library, runtime::GpuLibrary::Open());
  local->kernels = &library->kernels();
  HT_RETURN_IF_ERROR(AddDevice(*library, ordinal, local));
  if (place.world_size == 1) {
    local->communicators.push_back(std::move(host));
    return absl::OkStatus();
  }
  HT_ASSIGN_OR_RETURN(
      auto connected,
      (*library)->connect(std::move(host), local->devices[0].get(),
                          absl::Seconds(flags.connect_timeout),
                          absl::Seconds(flags.timeout)));
  local->communicators.push_back(std::move(connected));
  return absl::OkStatus();
}

absl::StatusOr<std::string> ChosenGpuTarget(const RankFlags& flags,
                                            const runtime::Environment& env) {
  int ordinal = 0;
  if (!flags.gpus.empty()) {
    HT_ASSIGN_OR_RETURN(const std::vector<int> ordinals, Ordinals(flags, env));
    ordinal = ordinals[0];
  } else {
    HT_ASSIGN_OR_RETURN(const runtime::RankPlacement place,
                        runtime::FindRank(env));
    if (place.device < 0) return "";
    ordinal = place.device;
  }
  const auto library = runtime::GpuLibrary::Open();
  if (!library.ok()) return AskedBy(flags, library.status());
  auto target = (**library)->target_of(ordinal);
  if (!target.ok()) return AskedBy(flags, target.status());
  return target;
}

}  // namespace tools
}  // namespace halftone
