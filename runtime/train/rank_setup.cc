#include "runtime/train/rank_setup.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "graph/base/out_of_memory.h"
#include "graph/base/output_file.h"
#include "graph/base/text.h"
#include "graph/ir/scaler_names.h"
#include "graph/ir/well_known.h"
#include "runtime/collective/reduce_by_nodes.h"
#include "runtime/log/words.h"
#include "runtime/plan/rank_groups.h"
#include "runtime/train/fetches.h"
#include "runtime/train/long_work.h"
#include "runtime/train/peers.h"
#include "runtime/train/rank_cells.h"
#include "runtime/train/resolve_fetches.h"
#include "runtime/train/run_directory.h"
#include "runtime/train/settings.h"
#include "runtime/train/source_weights.h"
#include "runtime/train/state.h"

namespace halftone {
namespace runtime {
namespace {

Tail TailOf(absl::string_view word) {
  return word == "pad"    ? Tail::kPad
         : word == "drop" ? Tail::kDrop
                          : Tail::kExact;
}

// The message in which rank 0 broadcasts its starting point: the length of the
// numbers, a newline, the numbers, the tuning table.
std::string EncodeStart(const StartingPoint& start) {
  std::map<std::string, double> numbers = start.numbers;
  numbers["resumed"] = start.resumed ? 1 : 0;
  const std::string encoded = Encode(numbers);
  return absl::StrCat(encoded.size(), "\n", encoded,
                      start.tuning.empty() ? "" : start.tuning.Serialize());
}

absl::Status DecodeStart(const std::string& message, StartingPoint* start) {
  const size_t line = message.find('\n');
  size_t size = 0;
  if (line == std::string::npos ||
      !absl::SimpleAtoi(message.substr(0, line), &size)) {
    return CommunicationError("rank 0 sent a damaged starting point");
  }
  HT_ASSIGN_OR_RETURN(start->numbers, Decode(message.substr(line + 1, size)));
  start->resumed = start->numbers["resumed"] != 0;
  const std::string tuning = message.substr(line + 1 + size);
  if (tuning.empty()) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(start->tuning, TuningTable::Parse(tuning, "rank 0's"));
  return absl::OkStatus();
}

void SayPassedOver(const std::vector<std::string>& damaged,
                   StartingPoint* start) {
  for (const std::string& line : damaged) {
    start->said.push_back(absl::StrCat("warning  passed over ", line));
  }
}

// Its numbers agree with it, and the data has the sample at which it stands.
absl::Status CheckPosition(const Manifest& manifest,
                           const SamplerOptions& sampler) {
  HT_ASSIGN_OR_RETURN(const Progress progress, FromNumbers(manifest.numbers));
  if (progress.step != manifest.step || progress.epoch != manifest.epoch ||
      progress.sample != manifest.sample) {
    return ModelError("its numbers are of another step than it is");
  }
  const int64_t samples = Sampler(sampler).samples_per_epoch();
  if (progress.sample == 0 || progress.sample < samples) {
    return absl::OkStatus();
  }
  return ModelError("it stands at sample ", WithCommas(progress.sample),
                    " of an epoch, and the data has ", WithCommas(samples),
                    " an epoch; resume with the data of that run, or take its "
                    "parameters into another with --init");
}

absl::Status CheckData(const Manifest& manifest, const Dataset& train) {
  const auto marks = manifest.texts.find(kDataMarks);
  return marks == manifest.texts.end() ? absl::OkStatus()
                                       : train.CheckMarks(marks->second);
}

// Of an eval: labels mean what they meant in training.
absl::Status CheckClasses(const std::vector<std::string>& was,
                          const RunData& data) {
  const std::vector<std::string>& now = data.opened.classes;
  const bool labelled = data.specs.size() > 1;
  if (was.empty() || now.empty() || !labelled) return absl::OkStatus();
  const size_t same =
      std::mismatch(was.begin(), was.end(), now.begin(), now.end()).first -
      was.begin();
  if (same == was.size() && same == now.size()) return absl::OkStatus();
  const auto name = [same](const std::vector<std::string>& names) {
    return same < names.size() ? PrintableName(names[same]) : "none";
  };
  return ModelError("--data: class ", same, " is ", name(now),
                    ", where the parameters were trained it was ", name(was),
                    "; give the folder that holds train/ beside val/, or one "
                    "with a folder for each of its classes");
}

// Rank 0: the newest good checkpoint of the run, if it has one.
absl::Status FindCheckpoint(const RunDirectory& directory,
                            const SamplerOptions& sampler, const Dataset& train,
                            StartingPoint* start) {
  HT_ASSIGN_OR_RETURN(start->tuning, directory.ReadTuning());
  if (ListCheckpoints(directory.checkpoints()).empty()) {
    start->said.push_back(absl::StrCat("resume   ", directory.path(),
                                       " holds no checkpoint: from the start"));
    return absl::OkStatus();
  }
  std::vector<std::string> skipped;
  HT_ASSIGN_OR_RETURN(start->state,
                      ReadLatestCheckpoint(directory.checkpoints(), &skipped));
  const Manifest& manifest = start->state->manifest;
  absl::Status fits = CheckData(manifest, train);
  fits.Update(CheckPosition(manifest, sampler));
  if (!fits.ok()) {
    return CheckpointError(directory.checkpoints(), "/step-", manifest.step,
                           "/manifest.json: ", fits.message());
  }
  SayPassedOver(skipped, start);
  start->resumed = true;
  start->numbers = manifest.numbers;
  return absl::OkStatus();
}

// Rank 0: what was timed on a device like this one. A run that is resumed has
// a table of its own.
void TakeTuning(Rank& rank) {
  const TuningTable& tuning = rank.config().tuning;
  if (tuning.empty()) return;
  const std::string here = rank.resources.device->Description();
  if (tuning.device_description == here) {
    rank.start.tuning = tuning;
    return;
  }
  rank.start.said.push_back(
      absl::StrCat("note     the tuning table beside the model was made on ",
                   tuning.device_description, ", this is ", here,
                   ": not used; halftone tune makes one for it"));
}

// What this rank alone can find wrong before the ranks work together.
absl::Status CheckRank(Rank& rank, bool train) {
  const TrainConfig& config = rank.config();
  HT_RETURN_IF_ERROR(rank.inputs.data->status());
  const RunData& data = rank.data();
  const bool samples = HasSamples(data.specs);
  if (!samples) rank.sampler.batch = 1;
  if (train && samples) {
    HT_ASSIGN_OR_RETURN(
        rank.sampler.batch,
        GlobalBatch(config, rank.sampler.world_size, data.train->size()));
  }
  if (train) {
    HT_RETURN_IF_ERROR(CheckRankGroups(
        *rank.inputs.program->FindEntry(kTrainEntry), rank.sampler.world_size));
    rank.sampler.size = data.train->size();
    if (Sampler(rank.sampler).steps_per_epoch() == 0) {
      return ModelError(
          "train.tail drop: the data has ",
          Count(rank.sampler.size, "training sample"), ", none for each of ",
          std::max<int64_t>(rank.sampler.shards, rank.sampler.world_size),
          " ranks or shards; use fewer, or tail exact");
    }
    HT_RETURN_IF_ERROR(ParseFetches(config.fetches).status());
  }
  if (!rank.is_zero()) return absl::OkStatus();
  for (const OpenedData* opened : {&data.opened, &data.opened_for_eval}) {
    for (const std::string& note : opened->notes) {
      rank.start.said.push_back(absl::StrCat("note     ", note));
    }
  }
  if (train) TakeTuning(rank);
  const RunDirectory directory(train ? config.out : "");
  if (directory.exists()) {
    HT_ASSIGN_OR_RETURN(rank.lock, directory.Take(config.resume));
    if (config.resume) {
      HT_RETURN_IF_ERROR(
          FindCheckpoint(directory, rank.sampler, *data.train, &rank.start));
    }
  }
  // What is written at the end; the run directory, in which it may be, is
  // there.
  if (train && !config.trace.empty()) {
    HT_RETURN_IF_ERROR(CheckOutput(config.trace));
  }
  const std::string& source = train                 ? config.init
                              : config.init.empty() ? config.out
                                                    : config.init;
  rank.start.from = rank.start.resumed ? config.out : source;
  if (rank.start.resumed || source.empty()) return absl::OkStatus();
  std::vector<std::string> skipped;
  HT_ASSIGN_OR_RETURN(rank.start.state, ReadAnyState(source, &skipped));
  SayPassedOver(skipped, &rank.start);
  const auto& texts = rank.start.state->manifest.texts;
  const auto classes = texts.find(kClasses);
  if (classes != texts.end()) {
    rank.start.classes = ClassesFromText(classes->second);
  }
  return train ? absl::OkStatus() : CheckClasses(rank.start.classes, data);
}

// NCCL's documentation: with several GPUs in a process the launch of a graph
// may block, and with it the other ranks' launches, which it waits for.
bool ThreadsOfNccl(const Rank& rank) {
  return rank.inputs.ranks_here > 1 && rank.communicator().enqueues();
}

// What a device does not do that was asked of it.
void NoteWhatIsNotDone(Rank& rank) {
  const Device& device = *rank.resources.device;
  if (ThreadsOfNccl(rank) && rank.config().use_graphs) {
    rank.start.said.push_back(absl::StrCat(
        "note     ", rank.inputs.ranks_here,
        " ranks in one process: steps run without a graph; halftone launch "
        "starts a process for each"));
  }
  if (!device.asynchronous() || rank.communicator().enqueues()) return;
  rank.start.said.push_back(absl::StrCat(
      "note     ", rank.communicator().world_size(), " ranks share a ",
      device.kind(), " device: what they reduce goes by way of the host",
      rank.config().use_graphs ? ", and steps run without a graph" : ""));
}

// A collective, before anything is allocated for sums.
absl::Status ReduceByNodesIfAsked(Rank& rank) {
  const proto::Dist& dist = rank.config().strategy.dist();
  if (!dist.use_hierarchical_allreduce()) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(
      const int ranks_per_node,
      ReduceByNodes(rank.communicator(),
                    dist.hierarchical_allreduce_inter_nranks()));
  const int nodes = rank.sampler.world_size / ranks_per_node;
  const bool two_levels = nodes > 1 && ranks_per_node > 1;
  rank.start.said.push_back(absl::StrCat(
      "note     all-reduce ",
      two_levels ? "inside each node, then between them: "
                 : "at once, as that is all there is: ",
      Count(nodes, "node"), " of ", Count(ranks_per_node, "rank")));
  return absl::OkStatus();
}

absl::Status Build(Rank& rank, bool train) {
  NoteWhatIsNotDone(rank);
  const TrainConfig& config = rank.config();
  ExecutorOptions options;
  options.deterministic = config.deterministic;
  options.use_graphs = config.use_graphs && !ThreadsOfNccl(rank);
  options.profile = config.profile;
  if (train) {
    HT_ASSIGN_OR_RETURN(KeptValues values,
                        ValuesToKeep(*rank.inputs.program, config.fetches));
    options.kept = std::move(values.always);
    options.fetches = std::move(values.fetched);
  }
  HT_ASSIGN_OR_RETURN(const auto stream,
                      rank.resources.device->CreateStream("compute"));
  rank.threads = stream->threads();
  HT_ASSIGN_OR_RETURN(
      rank.executor,
      Executor::Create(rank.inputs.program, rank.inputs.kernels,
                       rank.resources.device, rank.resources.communicator,
                       rank.start.tuning, options));
  const Program& program = *rank.inputs.program;
  if (train) {
    const auto prepare = [&rank](absl::string_view entry,
                                 const SymbolValues& symbols) {
      return rank.executor->Prepare(entry, symbols);
    };
    HT_ASSIGN_OR_RETURN(rank.bindings,
                        PrepareTraining(program, config.strategy.dist(),
                                        rank.sampler, prepare));
    for (const int binding : rank.bindings.steps.Uneven()) {
      rank.executor->CaptureNoCollectives(binding);
    }
  }
  if (rank.data().test != nullptr && program.FindEntry(kEvalEntry) != nullptr) {
    HT_ASSIGN_OR_RETURN(rank.evaluator,
                        Evaluator::Create(rank.data().test, rank.data().specs,
                                          rank.sampler, rank.merged_steps(),
                                          config.readers, rank.executor.get()));
  }
  return rank.executor->Initialize(config.strategy.train().seed());
}

// A scale that is constant in either program says nothing about the other.
bool TakesScaler(const Rank& rank) {
  const Manifest& was = rank.start.state->manifest;
  const auto dynamic = was.numbers.find(kDynamicScaling);
  return was.fingerprint == rank.config().fingerprint ||
         (rank.config()
              .strategy.amp()
              .loss_scaling()
              .use_dynamic_loss_scaling() &&
          dynamic != was.numbers.end() && dynamic->second != 0);
}

// Of rank 0: each rank has cells of its own in what is loaded.
constexpr char kLoadsOwn[] = "loads own";

// Rank 0's state from the checkpoint or --init, then everybody's.
absl::Status Load(Rank& rank, bool train, bool* agreed) {
  absl::Status status;
  bool loads = false, own = false;
  if (rank.start.state.has_value()) {
    loads = true;
    LoadOptions options;
    options.source = rank.start.from;
    options.parameters_only = !rank.start.resumed;
    options.take_scaler = TakesScaler(rank);
    rank.start.fresh_scale = !options.take_scaler;
    // A checkpoint is whole; a file of tensors may hold a part, or another's
    // names.
    std::vector<std::string> said;
    const bool tensors_alone = rank.start.state->manifest.fingerprint.empty();
    if (tensors_alone) {
      const std::string names =
          TakeSourceNames(*rank.inputs.program, &rank.start.state->tensors);
      if (!names.empty()) said.push_back("names are those of " + names);
      options.partial = train;
    }
    options.averages = !train;
    own = CellsOfRanks(rank.start.state->tensors) == rank.sampler.world_size &&
          HasCellsOfRanks(*rank.inputs.program);
    if (!own) AverageCellsOfRanks(&rank.start.state->tensors, &said);
    options.ignore_mismatched = train && rank.config().ignore_mismatched;
    status =
        WriteState(rank.start.state->tensors, options, *rank.executor, &said);
    const std::string verb = rank.start.resumed ? "resume   " : "init     ";
    for (const std::string& line : said) {
      if (train) rank.start.said.push_back(verb + line);
    }
  }
  const auto all = Agree(rank.communicator(), status,
                         own     ? kLoadsOwn
                         : loads ? "loads"
                                 : "");
  *agreed = !all.ok();
  HT_RETURN_IF_ERROR(all.status());
  if ((*all)[0].empty()) return absl::OkStatus();
  HT_RETURN_IF_ERROR(rank.executor->BroadcastState());
  if ((*all)[0] == kLoadsOwn) {
    HT_RETURN_IF_ERROR(SpreadCellsOfRanks(
        own ? rank.start.state->tensors : std::vector<Tensor>(),
        *rank.executor));
  }
  return rank.executor->Derive();
}

// As StepRecord has them.
absl::Status ReadLossScaling(Rank& rank) {
  const Program& program = *rank.inputs.program;
  std::vector<float> scales;
  for (;;) {
    const CellId cell = program.FindCell(absl::StrCat(
        kLossScaling, ScalerSuffix(static_cast<int>(scales.size()))));
    if (!cell.valid()) break;
    std::string bytes;
    HT_RETURN_IF_ERROR(rank.executor->ReadCell(cell, &bytes));
    std::memcpy(&scales.emplace_back(), bytes.data(), sizeof(float));
  }
  if (scales.empty()) return absl::OkStatus();
  rank.progress.loss_scaling = *std::min_element(scales.begin(), scales.end());
  if (scales.size() > 1) rank.progress.part_scales = std::move(scales);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int64_t> GlobalBatch(const TrainConfig& config, int world_size,
                                    int64_t samples) {
  const proto::Train& train = config.strategy.train();
  int64_t batch = train.batch_size();
  if (batch <= 0 &&
      __builtin_mul_overflow(train.batch_size_per_rank(), world_size, &batch)) {
    return ModelError("train.batch_size_per_rank ", train.batch_size_per_rank(),
                      ": times ", world_size, " ranks it is no number of ",
                      "samples any more; make it smaller");
  }
  if (batch < 1) {
    return ModelError(
        "train.batch_size: expected at least 1 sample per step, found ", batch,
        "; set it in the strategy or with --batch-size");
  }
  const proto::Dist& dist = config.strategy.dist();
  const int64_t merged = dist.gradient_merge().k_steps();
  if (batch < merged) {
    return ModelError("dist.gradient_merge.k_steps ", merged,
                      ": expected at most train.batch_size, ", batch,
                      ": each micro-batch has a sample; make the batch larger "
                      "or compile with fewer micro-batches");
  }
  if (batch < dist.virtual_shards()) {
    return ModelError("dist.virtual_shards ", dist.virtual_shards(),
                      ": expected at most train.batch_size, ", batch,
                      ": each shard has a sample; make the batch larger or "
                      "compile with fewer shards");
  }
  HT_RETURN_IF_ERROR(CheckShards(dist, world_size));
  if (batch > samples) {
    return ModelError("train.batch_size ", WithCommas(batch), ": the data has ",
                      Count(samples, "training sample"),
                      "; expected at most that: set it in ",
                      "the strategy or with --batch-size");
  }
  return batch;
}

std::string ClassesToText(const std::vector<std::string>& classes) {
  return absl::StrJoin(classes, "/",
                       [](std::string* to, const std::string& name) {
                         *to += absl::CHexEscape(name);
                       });
}

std::vector<std::string> ClassesFromText(absl::string_view text) {
  std::vector<std::string> classes = absl::StrSplit(text, '/');
  for (std::string& name : classes) {
    std::string plain;
    if (absl::CUnescape(name, &plain)) name = std::move(plain);
  }
  return classes;
}

absl::Status SetUpRank(Rank& rank, bool train, bool* agreed) {
  const Doing doing("setting a rank up");
  const TrainConfig& config = rank.config();
  rank.sampler.world_size = rank.communicator().world_size();
  rank.sampler.rank = rank.communicator().rank();
  const proto::Train& of_strategy = config.strategy.train();
  rank.sampler.tail = TailOf(of_strategy.tail());
  rank.sampler.shuffle = config.shuffle;
  rank.sampler.seed = of_strategy.seed();
  rank.sampler.shards = config.strategy.dist().virtual_shards();
  // For an eval alone any batch will do; it changes nothing but the speed.
  rank.sampler.batch =
      of_strategy.batch_size() > 0 ? of_strategy.batch_size() : 64;
  absl::Status seen;
  // A checkpoint is read and proven sound here, from whatever disk.
  HT_RETURN_IF_ERROR(DoLongWork(rank.communicator(), [&] {
    const Doing doing("looking for where to start");
    seen = CheckRank(rank, train);
    return absl::OkStatus();
  }));
  const auto all =
      Agree(rank.communicator(), seen,
            rank.is_zero() && seen.ok() ? EncodeStart(rank.start) : "");
  *agreed = !all.ok();
  HT_RETURN_IF_ERROR(all.status());
  if (!rank.is_zero()) HT_RETURN_IF_ERROR(DecodeStart((*all)[0], &rank.start));
  const absl::Status same =
      CheckSameSettings(rank.communicator(), SettingsOf(rank, train));
  *agreed = !same.ok();
  HT_RETURN_IF_ERROR(same);
  if (train) {
    const absl::Status asked = ReduceByNodesIfAsked(rank);
    *agreed = !asked.ok();
    HT_RETURN_IF_ERROR(asked);
  }
  HT_RETURN_IF_ERROR(Build(rank, train));
  HT_RETURN_IF_ERROR(Load(rank, train, agreed));
  if (rank.start.resumed) {
    HT_ASSIGN_OR_RETURN(rank.progress, FromNumbers(rank.start.numbers));
  }
  return ReadLossScaling(rank);
}

}  // namespace runtime
}  // namespace halftone
