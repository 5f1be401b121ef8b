#include "tests/support/run_steps.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "kernels/register_all.h"
#include "runtime/data/batch_reader.h"
#include "runtime/data/sampler.h"
#include "runtime/exec/executor.h"
#include "runtime/train/feeds.h"
#include "runtime/train/fetches.h"

namespace halftone {
namespace {

using runtime::Batch;
using runtime::Executor;

class Rank {
 public:
  Rank(const Program& program, const StepsSpec& spec, int rank)
      : program_(program), spec_(spec), rank_(rank) {}

  absl::Status Run(runtime::Communicator* communicator, StepsResult* result) {
    HT_RETURN_IF_ERROR(Open());
    const kernels::KernelRegistry& kernels =
        spec_.kernels.empty() ? kernels::Kernels() : *spec_.kernels[rank_];
    runtime::ExecutorOptions options;
    options.fetches = spec_.fetches;
    HT_ASSIGN_OR_RETURN(
        executor_,
        Executor::Create(&program_, &kernels, device_.get(), communicator,
                         runtime::TuningTable(), options));
    // By what all ranks hold, so that ranks prepare as many plans.
    for (const int64_t global : {spec_.batch, sampler_.size % spec_.batch}) {
      if (global == 0) continue;
      SymbolValues symbols{};
      symbols[0] = runtime::RankRange(sampler_, global, rank_).count;
      HT_ASSIGN_OR_RETURN(bindings_[global],
                          executor_->Prepare(kTrainEntry, symbols));
    }
    HT_RETURN_IF_ERROR(executor_->Initialize(spec_.seed));
    HT_RETURN_IF_ERROR(Steps(result));
    for (int i = 0; i < program_.num_cells(); ++i) {
      const Cell& cell = program_.cell(CellId(i));
      if (!cell.IsSaved()) continue;
      HT_RETURN_IF_ERROR(executor_->ReadCell(
          CellId(i), &result->cells[rank_][std::string(cell.name)]));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Open() {
    specs_ = runtime::FeedSpecsOf(program_);
    HT_ASSIGN_OR_RETURN(
        data_, runtime::OpenData(spec_.data, specs_, {{}, spec_.seed}));
    sampler_.size = data_.train->size();
    sampler_.batch = spec_.batch;
    sampler_.world_size = spec_.ranks;
    sampler_.rank = rank_;
    sampler_.seed = spec_.seed;
    const int64_t per_epoch = runtime::Sampler(sampler_).steps_per_epoch();
    runtime::ReaderOptions reading;
    reading.epochs = (spec_.steps + per_epoch - 1) / per_epoch;
    reader_ =
        runtime::MakeBatchReader(data_.train.get(), specs_, sampler_, reading);
    return absl::OkStatus();
  }

  absl::Status Steps(StepsResult* result) {
    const Entry& entry = *program_.FindEntry(kTrainEntry);
    runtime::ImplicitFeeds implicit;
    implicit.seed = spec_.seed;
    implicit.schedule[0] = spec_.learning_rate;
    implicit.schedule[1] = static_cast<float>(spec_.steps);
    runtime::FeedList feeds(entry, specs_, &implicit);
    for (int64_t step = 0; step < spec_.steps; ++step) {
      HT_ASSIGN_OR_RETURN(const Batch* batch, reader_->Next());
      implicit.largest_count = static_cast<float>(
          runtime::LossElements(entry, batch->share.largest_count));
      implicit.first_sample = batch->share.first_sample;
      HT_ASSIGN_OR_RETURN(
          const int64_t ticket,
          executor_->Execute(bindings_[batch->share.global_count],
                             feeds.Point(*batch)));
      HT_ASSIGN_OR_RETURN(const runtime::StepView view,
                          executor_->Read(ticket));
      if (rank_ != 0) continue;
      result->losses.push_back(view.Scalar(kLossSum) / view.Scalar(kCount));
      result->rejected.push_back(view.Scalar(kFoundInf) != 0);
      for (const auto& item : view.items()) {
        const bool asked = std::count(spec_.fetches.begin(),
                                      spec_.fetches.end(), item.name) > 0;
        if (step == 0 && asked) {
          result->fetched[std::string(item.name)] = runtime::Floats(item);
        }
      }
    }
    return absl::OkStatus();
  }

  const Program& program_;
  const StepsSpec& spec_;
  int rank_;
  std::unique_ptr<runtime::Device> device_ =
      runtime::MakeCpuDevice(rank_, spec_.threads);
  std::vector<runtime::FeedSpec> specs_;
  runtime::OpenedData data_;
  runtime::SamplerOptions sampler_;
  std::unique_ptr<runtime::BatchReader> reader_;
  std::unique_ptr<Executor> executor_;
  std::map<int64_t, int> bindings_;  // by samples on all ranks
};

}  // namespace

const kernels::KernelRegistry& KernelsWithoutPatterns() {
  static const auto* const registry = [] {
    auto* inlined = new kernels::KernelRegistry(kernels::Kernels());
    inlined->ForEach([](absl::string_view key, kernels::Candidate& candidate) {
      if (!absl::StartsWith(key, "pattern:")) return;
      candidate.supports = [](const kernels::BoundOp&) { return false; };
    });
    return inlined;
  }();
  return *registry;
}

absl::StatusOr<StepsResult> RunSteps(const Program& program,
                                     const StepsSpec& spec) {
  auto communicators =
      runtime::MakeInProcessCommunicators(spec.ranks, absl::Minutes(2));
  StepsResult result;
  result.cells.resize(spec.ranks);
  std::vector<absl::Status> statuses(spec.ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < spec.ranks; ++r) {
    threads.emplace_back([&, r] {
      statuses[r] = Rank(program, spec, r).Run(communicators[r].get(), &result);
      if (!statuses[r].ok()) communicators[r]->Abort(statuses[r]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) {
    HT_RETURN_IF_ERROR(status);
  }
  return result;
}

}  // namespace halftone
