#include "tools/common/run_flags.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/io/model_reader.h"
#include "graph/targets/target.h"
#include "passes/options/byte_text.h"
#include "runtime/collective/connect.h"
#include "runtime/data/data_format.h"
#include "runtime/device/host_info.h"
#include "runtime/gpu/targets.h"
#include "runtime/rendezvous/environment.h"
#include "runtime/rendezvous/token.h"
#include "runtime/train/best_checkpoint.h"
#include "tools/common/gpu_ranks.h"
#include "tools/common/launch_command.h"
#include "tools/common/model_flags.h"
#include "tools/common/model_path.h"
#include "tools/common/planned_peak.h"

namespace halftone {
namespace tools {
namespace {

constexpr int kMostRanks = 1024, kMostThreads = 1024;

std::string Variable(const runtime::Environment& env, const char* name) {
  const auto found = env.find(name);
  return found == env.end() ? "" : found->second;
}

absl::Status AddThreadRanks(const RankFlags& flags, LocalRanks* local) {
  const int ranks = std::max(1, flags.ranks);
  const int threads = ThreadsPerRank(flags.threads, ranks);
  local->communicators =
      ranks == 1 ? std::vector<std::unique_ptr<runtime::Communicator>>()
                 : runtime::MakeInProcessCommunicators(
                       ranks, absl::Seconds(flags.timeout));
  if (ranks == 1) {
    local->communicators.push_back(runtime::MakeSingleCommunicator());
  }
  for (int r = 0; r < ranks; ++r) {
    local->devices.push_back(runtime::MakeCpuDevice(r, threads));
  }
  return absl::OkStatus();
}

absl::Status AddLaunchedRank(const RankFlags& flags,
                             const runtime::RankPlacement& place,
                             const runtime::Environment& env, bool on_gpu,
                             LocalRanks* local) {
  runtime::ConnectOptions options;
  options.place = place;
  HT_ASSIGN_OR_RETURN(options.token, runtime::FindToken(env));
  options.tmp_dir = Variable(env, "TMPDIR");
  options.connect_timeout = absl::Seconds(flags.connect_timeout);
  options.timeout = absl::Seconds(flags.timeout);
  local->reporter->SetActivity("meeting the other ranks");
  HT_ASSIGN_OR_RETURN(auto communicator, runtime::ConnectRank(options));
  local->reporter->SetActivity("set-up");
  if (on_gpu) {
    return AddLaunchedGpuRank(flags, place, env, std::move(communicator),
                              local);
  }
  local->communicators.push_back(std::move(communicator));
  const int threads = ThreadsPerRank(flags.threads, place.local_world_size);
  local->devices.push_back(runtime::MakeCpuDevice(place.local_rank, threads));
  // Ranks that share out the machine wait for each other in every step: two
  // that compute on one core take twice as long.
  if (threads * place.local_world_size == runtime::UsableCores()) {
    runtime::KeepToCores(place.local_rank * threads, threads);
  }
  return absl::OkStatus();
}

// GPUs of one machine may be of several kinds.
absl::Status CheckTargets(const LocalRanks& local, const std::string& target) {
  for (const auto& device : local.devices) {
    if (device->target() == target) continue;
    return DeviceError(device->kind(), ":", device->ordinal(), " (",
                       device->Description(), "): the model is compiled for ",
                       target, ", this device runs ", device->target(),
                       "; use devices of one kind, or compile for this one");
  }
  return absl::OkStatus();
}

}  // namespace

int ThreadsPerRank(int asked, int ranks_here) {
  if (asked > 0) return asked;
  int threads = 0;
  const char* omp = std::getenv("OMP_NUM_THREADS");
  if (omp != nullptr && absl::SimpleAtoi(omp, &threads) && threads > 0) {
    return std::min(threads, kMostThreads);
  }
  return std::max(1, runtime::UsableCores() / std::max(1, ranks_here));
}

int ThreadsHere(const RankFlags& flags) {
  if (flags.ranks > 0) return ThreadsPerRank(flags.threads, flags.ranks);
  const auto place = runtime::FindRank(runtime::CurrentEnvironment());
  return ThreadsPerRank(flags.threads,
                        place.ok() ? place->local_world_size : 1);
}

Flag AddThreadsFlag(Verb verb, int* threads) {
  return verb
      .AddOption("--threads", threads,
                 "compute threads per rank; default: OMP_NUM_THREADS, else "
                 "cores / ranks")
      .InRange(1, kMostThreads);
}

void AddDeviceFlags(Verb verb, RankFlags* flags) {
  verb.AddOption("--gpus", &flags->gpus, "the GPU that it runs on: 0");
  AddThreadsFlag(verb, &flags->threads);
}

void AddRankFlags(Verb verb, RankFlags* flags) {
  const char* const launched =
      IsRankVerb(verb.name()) ? " (or use halftone launch)" : "";
  verb.AddOption("--ranks", &flags->ranks,
                 absl::StrCat("ranks as threads of this process", launched))
      .InRange(1, kMostRanks);
  verb.AddOption("--gpus", &flags->gpus,
                 "one rank per listed GPU; ranks may share one: 0,0");
  AddThreadsFlag(verb, &flags->threads);
  verb.AddOption("--connect-timeout", &flags->connect_timeout,
                 "seconds to wait for a rank that does not arrive")
      .Seconds();
  verb.AddOption("--timeout", &flags->timeout,
                 "seconds to wait for a peer in a collective")
      .Seconds();
}

void AddMaxUnpackFlag(Verb verb, runtime::TrainConfig* config) {
  verb.AddOption("--max-unpack", &config->max_unpack,
                 "packed data that claims more than so many times its size "
                 "is refused (default 100)")
      .InRange(1, int64_t{1} << 40);
}

Flag AddDataFlags(Verb verb, runtime::TrainConfig* config) {
  const Flag data =
      verb.AddOption("--data", &config->data, "one of " + runtime::DataUsage())
          .Required();
  verb.AddOption("--eval-data", &config->eval_data,
                 "where --data has no test split");
  verb.AddOption("--feed", &config->feed_map,
                 "image=x: the data's name of a feed, and the model's");
  AddMaxUnpackFlag(verb, config);
  verb.AddOption("--workers", &config->readers, "reader threads per rank")
      .InRange(1, 64);
  verb.AddSwitch("!--no-deterministic", &config->deterministic,
                 "allow kernels whose bits vary from run to run");
  verb.AddSwitch("!--no-graph", &config->use_graphs,
                 "run steps one by one where a device would replay them");
  return data;
}

void AddParameterFlags(Verb verb, bool* best, runtime::TrainConfig* config) {
  verb.AddOption("--init", &config->init,
                 "parameters by name: a .safetensors file or run directory");
  verb.AddSwitch("--best", best,
                 "of a run directory: the checkpoint of its best eval");
}

absl::Status FindParameters(absl::string_view verb, const std::string& path,
                            bool best, runtime::TrainConfig* config) {
  HT_ASSIGN_OR_RETURN(const ModelPath found, FindModel(path));
  const bool of_run = found.checkpoint.empty() && !found.run.empty();
  if (best && (!of_run || !config->init.empty())) {
    return UsageError(
        verb, " --best: ", path,
        of_run ? " and --init: the best of which?" : ": not a run directory");
  }
  if (best) {
    HT_ASSIGN_OR_RETURN(config->init, runtime::BestCheckpoint(found.run));
  }
  if (!config->init.empty()) return absl::OkStatus();
  config->init = found.checkpoint;
  if (of_run) config->out = found.run;
  return absl::OkStatus();
}

LocalRanks::~LocalRanks() {
  std::vector<std::thread> threads;
  for (auto& communicator : communicators) {
    threads.emplace_back([&communicator] { communicator.reset(); });
  }
  for (std::thread& thread : threads) thread.join();
}

absl::StatusOr<std::string> TargetOfRun(const RankFlags& flags) {
  const runtime::Environment env = runtime::CurrentEnvironment();
  HT_ASSIGN_OR_RETURN(const std::string chosen, ChosenGpuTarget(flags, env));
  if (!chosen.empty()) return chosen;
  // Our launcher names the device where a rank is to use one.
  const bool plain = flags.ranks > 0 || env.count(runtime::kRankVariable) > 0;
  return plain ? CpuTarget().name : runtime::DefaultTarget();
}

absl::StatusOr<LocalRanks> MakeRanks(const RankFlags& flags,
                                     const std::string& target) {
  HT_ASSIGN_OR_RETURN(const Target* known, TargetNamed(target, "--target "));
  const bool on_gpus = known->is_gpu();
  if (!flags.gpus.empty() && !on_gpus) {
    return UsageError("--gpus ", flags.gpus, ": the model is compiled for ",
                      target, "; compile it with --target ",
                      absl::StrReplaceAll(GpuTargetNames(), {{", ", " or "}}),
                      ", or use --ranks");
  }
  const runtime::Environment env = runtime::CurrentEnvironment();
  HT_ASSIGN_OR_RETURN(const runtime::RankPlacement place,
                      runtime::FindRank(env));
  const bool threads = flags.ranks > 0 || !flags.gpus.empty();
  if (threads && place.world_size > 1) {
    return UsageError(
        flags.gpus.empty() ? "--ranks " : "--gpus ",
        flags.gpus.empty() ? absl::StrCat(flags.ranks) : flags.gpus,
        ": this process is rank ", place.rank, " of ", place.world_size,
        " already (", place.source, "); leave it to the launcher");
  }
  LocalRanks local;
  local.reporter = runtime::StatusReporter::FromEnvironment(env);
  local.kernels = &kernels::Kernels();
  if (place.source != "none" && !threads) {
    HT_RETURN_IF_ERROR(AddLaunchedRank(flags, place, env, on_gpus, &local));
  } else if (on_gpus) {
    HT_RETURN_IF_ERROR(AddGpuThreadRanks(flags, env, &local));
  } else {
    HT_RETURN_IF_ERROR(AddThreadRanks(flags, &local));
  }
  HT_RETURN_IF_ERROR(CheckTargets(local, target));
  for (size_t r = 0; r < local.devices.size(); ++r) {
    local.resources.push_back(
        {local.devices[r].get(), local.communicators[r].get()});
  }
  local.reporter->SetDevice(local.devices[0]->Description());
  return local;
}

namespace {

std::vector<std::string> OpsOf(const CompiledModel& model) {
  const auto program = BuildProgram(model.WholeSource());
  std::vector<std::string> names;
  if (!program.ok()) return names;
  for (const auto& entry : (*program)->entries()) {
    const Block& block = entry->block();
    for (OpId id : block.ops()) names.emplace_back(block.name(block.op(id)));
  }
  return names;
}

// A precision that is as it was is no change.
bool Accepts(const CompiledModel& model, const std::string& path,
             const std::string& value) {
  const passes::Override field = {path, value, "--set"};
  const auto changed = RecompileWith(model, {field});
  return changed.ok() && (!absl::StartsWith(path, "amp.") ||
                          changed->fingerprint != model.fingerprint);
}

}  // namespace

void NoteThreads(const CompiledModel& model, const RankFlags& flags,
                 const LocalRanks& ranks, runtime::TrainConfig* config) {
  const proto::Dist& dist = config->strategy.dist();
  if (flags.threads > 1 && dist.has_virtual_shards()) {
    config->notes.push_back(absl::StrCat(
        "note     --threads ", flags.threads,
        ": a CPU rank computes with 1, as dist.virtual_shards asks for bits "
        "that do not depend on threads"));
  }
  const proto::Train& train = config->strategy.train();
  const auto budget = passes::BytesFromText(train.memory_budget());
  if (!budget) return;
  const int world_size = ranks.communicators[0]->world_size();
  const runtime::RunQuestion question =
      QuestionOf(model, BatchOf(config->strategy, world_size), world_size,
                 ThreadsHere(flags));
  const auto memory = PlannedMemory(question);
  // What else is wrong with it, the run says.
  if (!memory.ok() || memory->bytes() <= *budget) return;
  config->notes.push_back(absl::StrCat(
      "warning  a rank needs ", HumanBytes(memory->bytes()),
      ThreadsText(" with ", question), ", train.memory_budget is ",
      HumanBytes(*budget),
      ": it was met for other threads, ranks or samples; compile the model "
      "again for these"));
}

absl::Status FillConfig(const CompiledModel& model,
                        runtime::TrainConfig* config) {
  config->strategy = model.strategy;
  config->fingerprint = model.fingerprint;
  config->state_signature = StateSignature(*model.program);
  HT_ASSIGN_OR_RETURN(config->model_bytes, SerializeCompiledModel(model));
  config->model_ops = [&model] { return OpsOf(model); };
  config->accepts = [&model](const std::string& path,
                             const std::string& value) {
    return Accepts(model, path, value);
  };
  return absl::OkStatus();
}

}  // namespace tools
}  // namespace halftone
