#include "runtime/train/eval_ranks.h"

#include <memory>
#include <thread>

#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "runtime/log/console.h"
#include "runtime/train/fixed_threads.h"
#include "runtime/train/long_work.h"
#include "runtime/train/peers.h"

namespace halftone {
namespace runtime {
namespace {

absl::Status RunRank(const char* what, const RunInputs& inputs,
                     const RankResources& resources, size_t r,
                     absl::StatusOr<RunData>* data, const EvalWork& work) {
  Rank rank;
  rank.inputs = inputs;
  rank.resources = resources;
  bool agreed = false;
  absl::Status status =
      OpenDataTogether(*inputs.program, *inputs.config, /*trained_on=*/false,
                       inputs.ranks_here, rank.communicator(), data);
  if (status.ok()) status = SetUpRank(rank, /*train=*/false, &agreed);
  if (status.ok()) {
    // Of a run directory, the checkpoints that were passed over.
    if (rank.is_zero()) {
      for (const std::string& line : rank.start.said) {
        inputs.console->Message(line);
      }
      inputs.activity->Begin(what, 0, rank.evaluator->samples());
    }
    status = work(rank, r, rank.is_zero() ? inputs.activity : nullptr);
  }
  if (!status.ok() && !agreed) rank.communicator().Abort(status);
  return status;
}

}  // namespace

absl::Status RunEvalRanks(const char* what, const Program& program,
                          const kernels::KernelRegistry& kernels,
                          const TrainConfig& config,
                          const std::vector<RankResources>& ranks,
                          const EvalWork& work) {
  if (program.FindEntry(kEvalEntry) == nullptr) {
    return ModelError("the model has no eval entry: compile it again");
  }
  Console console = Console::Standard();
  Activity activity;
  std::unique_ptr<Pulse> pulse;
  if (ranks[0].communicator->rank() == 0) {
    activity.Begin("set-up");
    pulse = std::make_unique<Pulse>(&console, &activity);
  }
  absl::StatusOr<RunData> data = absl::UnknownError("not opened yet");
  const RunInputs inputs{&program,
                         &kernels,
                         &config,
                         &data,
                         &console,
                         &activity,
                         static_cast<int>(ranks.size())};
  const FixedThreads fixed(config, ranks);
  std::vector<absl::Status> results(ranks.size());
  std::vector<std::thread> threads;
  for (size_t r = 1; r < ranks.size(); ++r) {
    threads.emplace_back([&, r] {
      results[r] = RunRank(what, inputs, fixed.ranks()[r], r, nullptr, work);
    });
  }
  results[0] = RunRank(what, inputs, fixed.ranks()[0], 0, &data, work);
  for (std::thread& thread : threads) thread.join();
  return Culprit(results);
}

}  // namespace runtime
}  // namespace halftone
