#include "runtime/compare/compare_programs.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/ir/scaler_names.h"
#include "graph/ir/well_known.h"
#include "runtime/compare/watch_values.h"
#include "runtime/data/batch_reader.h"
#include "runtime/exec/executor.h"
#include "runtime/train/bindings.h"
#include "runtime/train/feeds.h"
#include "runtime/train/open_run_data.h"
#include "runtime/train/rank_setup.h"
#include "runtime/train/run_directory.h"
#include "runtime/train/starting_parameters.h"
#include "runtime/train/state.h"
#include "runtime/train/timing.h"

namespace halftone {
namespace runtime {
namespace {

// Where both programs start.
struct Start {
  std::vector<Tensor> tensors;
  std::vector<Tensor> scalers;  // of a checkpoint; else none
};

absl::StatusOr<Start> FindStart(const Program& compared,
                                const kernels::KernelRegistry& kernels,
                                const TrainConfig& config,
                                const RankResources& rank,
                                std::vector<std::string>* said) {
  Start start;
  HT_ASSIGN_OR_RETURN(start.tensors,
                      StartingParameters(compared, kernels, config, rank,
                                         /*averages=*/false, said));
  const std::string& source = config.init.empty() ? config.out : config.init;
  const bool dynamic =
      config.strategy.amp().loss_scaling().use_dynamic_loss_scaling();
  if (source.empty() || !dynamic) return start;
  std::vector<std::string> again;  // StartingParameters has said it
  HT_ASSIGN_OR_RETURN(Checkpoint checkpoint, ReadAnyState(source, &again));
  for (Tensor& tensor : checkpoint.tensors) {
    if (!absl::StartsWith(tensor.name, kLossScaling)) continue;
    start.scalers.push_back(std::move(tensor));
  }
  return start;
}

// One of the two programs, ready for batches of one size.
class Side {
 public:
  static absl::StatusOr<std::unique_ptr<Side>> Create(
      const Program* program, const kernels::KernelRegistry& kernels,
      const RankResources& rank, const TrainConfig& config,
      absl::string_view entry, int64_t samples) {
    auto side = std::make_unique<Side>();
    side->entry_ = program->FindEntry(entry);
    ExecutorOptions options;
    options.deterministic = config.deterministic;
    options.use_graphs = false;
    HT_ASSIGN_OR_RETURN(
        side->executor_,
        Executor::Create(program, &kernels, rank.device, rank.communicator,
                         TuningTable(), options));
    SymbolValues symbols{};
    symbols[0] = samples;
    HT_ASSIGN_OR_RETURN(side->binding_,
                        side->executor_->Prepare(entry, symbols));
    HT_RETURN_IF_ERROR(
        side->executor_->Initialize(config.strategy.train().seed()));
    side->specs_ = FeedSpecsOf(*program);
    side->implicit_.seed = config.strategy.train().seed();
    side->implicit_.largest_count =
        static_cast<float>(LossElements(*side->entry_, samples));
    side->feeds_ = std::make_unique<FeedList>(*side->entry_, side->specs_,
                                              &side->implicit_);
    return side;
  }

  absl::Status Load(const std::vector<Tensor>& tensors,
                    const std::vector<Tensor>& scalers) {
    LoadOptions options;
    options.parameters_only = true;
    std::vector<std::string> said;  // conversions are what is compared
    HT_RETURN_IF_ERROR(WriteState(tensors, options, *executor_, &said));
    const Program& program = executor_->program();
    for (const Tensor& tensor : scalers) {
      const CellId cell = program.FindCell(tensor.name);
      if (!cell.valid()) continue;
      HT_RETURN_IF_ERROR(executor_->WriteCell(cell, tensor.bytes));
    }
    return executor_->Derive();
  }

  // By the number of the scaler.
  absl::StatusOr<std::vector<float>> LossScales() {
    std::vector<float> scales;
    const Program& program = executor_->program();
    for (int i = 0;; ++i) {
      const CellId cell =
          program.FindCell(absl::StrCat(kLossScaling, ScalerSuffix(i)));
      if (!cell.valid()) break;
      std::string bytes;
      HT_RETURN_IF_ERROR(executor_->ReadCell(cell, &bytes));
      scales.emplace_back();
      std::memcpy(&scales.back(), bytes.data(), sizeof(float));
    }
    if (scales.empty()) scales.push_back(1);
    return scales;
  }

  // Milliseconds.
  absl::StatusOr<double> Watch(const Batch& batch, StepWatcher* watcher) {
    implicit_.first_sample = batch.share.first_sample;
    Stopwatch watch;
    HT_RETURN_IF_ERROR(
        executor_->Watch(binding_, feeds_->Point(batch), watcher));
    return watch.seconds() * 1000;
  }

 private:
  const Entry* entry_ = nullptr;
  std::unique_ptr<Executor> executor_;
  std::vector<FeedSpec> specs_;
  ImplicitFeeds implicit_;
  std::unique_ptr<FeedList> feeds_;
  int binding_ = -1;
};

// Samples of a micro-batch: what one run of the entry takes.
absl::StatusOr<int64_t> SamplesOf(const TrainConfig& config,
                                  const RunData& data) {
  if (!HasSamples(data.specs)) return 1;
  HT_ASSIGN_OR_RETURN(const int64_t batch, GlobalBatch(config, /*world_size=*/1,
                                                       data.train->size()));
  const proto::Dist& dist = config.strategy.dist();
  SamplerOptions sampler;
  sampler.batch = batch;
  sampler.shards = dist.virtual_shards();
  return StepCut(sampler, batch, dist.gradient_merge().k_steps()).largest();
}

std::unique_ptr<BatchReader> ReaderOf(const TrainConfig& config,
                                      const RunData& data, int64_t samples,
                                      int64_t batches) {
  SamplerOptions sampler;
  sampler.size = data.train->size();
  sampler.batch = samples;
  sampler.shuffle = config.shuffle;
  sampler.seed = config.strategy.train().seed();
  ReaderOptions options;
  options.workers = config.readers;
  options.epochs = batches;  // of which each has a whole batch at least
  return MakeBatchReader(data.train, data.specs, sampler, options);
}

}  // namespace

absl::StatusOr<Comparison> ComparePrograms(
    const Program& reference, const Program& compared,
    const kernels::KernelRegistry& kernels, const TrainConfig& config,
    const RankResources& rank, const CompareOptions& options) {
  const bool trains = reference.FindEntry(kTrainEntry) != nullptr &&
                      compared.FindEntry(kTrainEntry) != nullptr;
  Comparison comparison;
  comparison.entry = trains ? kTrainEntry : kEvalEntry;
  HT_ASSIGN_OR_RETURN(const ValueMatch match,
                      MatchValues(reference, compared, comparison.entry));
  HT_ASSIGN_OR_RETURN(const RunData data,
                      OpenRunData(compared, config, /*trained_on=*/trains));
  HT_ASSIGN_OR_RETURN(comparison.batch, SamplesOf(config, data));
  HT_ASSIGN_OR_RETURN(const Start start, FindStart(compared, kernels, config,
                                                   rank, &comparison.said));
  const auto make = [&](const Program& program) {
    return Side::Create(&program, kernels, rank, config, comparison.entry,
                        comparison.batch);
  };
  HT_ASSIGN_OR_RETURN(const auto one, make(reference));
  HT_ASSIGN_OR_RETURN(const auto other, make(compared));
  HT_RETURN_IF_ERROR(one->Load(start.tensors, {}));
  HT_RETURN_IF_ERROR(other->Load(start.tensors, start.scalers));
  HT_ASSIGN_OR_RETURN(std::vector<float> scales, one->LossScales());
  ReferenceKeeper keeper(&match, std::move(scales));
  HT_ASSIGN_OR_RETURN(scales, other->LossScales());
  comparison.loss_scaling = scales[0];
  ErrorWatcher isolated(&match, &keeper.kept(), scales, /*isolated=*/true);
  ErrorWatcher chained(&match, &keeper.kept(), scales, /*isolated=*/false);

  const auto reader = ReaderOf(config, data, comparison.batch, options.batches);
  while (comparison.batches < options.batches) {
    HT_ASSIGN_OR_RETURN(const Batch* const batch, reader->Next());
    if (batch == nullptr) break;
    if (batch->share.global_count < comparison.batch) continue;  // a rest
    HT_ASSIGN_OR_RETURN(double ms, one->Watch(*batch, &keeper));
    comparison.reference_ms += ms;
    if (options.isolated) {
      HT_ASSIGN_OR_RETURN(ms, other->Watch(*batch, &isolated));
      comparison.isolated_ms += ms;
    }
    if (options.chained) {
      HT_ASSIGN_OR_RETURN(ms, other->Watch(*batch, &chained));
      comparison.chained_ms += ms;
    }
    ++comparison.batches;
  }
  for (double* const ms : {&comparison.reference_ms, &comparison.isolated_ms,
                           &comparison.chained_ms}) {
    *ms /= std::max<int64_t>(comparison.batches, 1);
  }
  for (size_t i = 0; i < match.values.size(); ++i) {
    const ValueErrors& alone = isolated.errors()[i];
    const ValueErrors& both = chained.errors()[i];
    // Where an op only says how another value is read, nothing is made.
    if (alone.elements == 0 && both.elements == 0) continue;
    comparison.values.push_back({match.values[i], alone, both});
  }
  comparison.unmatched = match.unmatched;
  return comparison;
}

}  // namespace runtime
}  // namespace halftone
