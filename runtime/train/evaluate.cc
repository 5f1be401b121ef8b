// Evaluate: the eval entry alone, on a state that was trained before.
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "runtime/log/console.h"
#include "runtime/train/long_work.h"
#include "runtime/train/peers.h"
#include "runtime/train/rank_setup.h"
#include "runtime/train/trainer.h"

namespace halftone {
namespace runtime {
namespace {

absl::StatusOr<EvalReport> EvaluateRank(
    const RunInputs& inputs, const RankResources& resources,
    const std::function<void()>& open_data) {
  Rank rank;
  rank.inputs = inputs;
  rank.resources = resources;
  bool agreed = false;
  absl::Status status = OpenDataTogether(rank.communicator(), open_data);
  if (status.ok()) status = SetUpRank(rank, /*train=*/false, &agreed);
  absl::StatusOr<EvalReport> report = EvalReport();
  if (status.ok()) {
    // Of a run directory, the checkpoints that were passed over.
    if (rank.is_zero()) {
      for (const std::string& line : rank.start.said) {
        inputs.console->Message(line);
      }
    }
    if (rank.is_zero()) {
      inputs.activity->Begin("eval", 0, rank.evaluator->samples());
    }
    report = rank.evaluator->Run(rank.is_zero() ? inputs.activity : nullptr);
  } else {
    report = status;
  }
  if (!report.ok() && !agreed) rank.communicator().Abort(report.status());
  return report;
}

}  // namespace

absl::StatusOr<EvalReport> Evaluate(const Program& program,
                                    const kernels::KernelRegistry& kernels,
                                    const TrainConfig& config,
                                    const std::vector<RankResources>& ranks) {
  if (program.FindEntry(kEvalEntry) == nullptr) {
    return ModelError("the model has no eval entry: compile it again");
  }
  if (config.init.empty() && config.out.empty()) {
    return UsageError("eval needs a run directory or tensors to evaluate");
  }
  Console console = Console::Standard();
  Activity activity;
  std::unique_ptr<Pulse> pulse;
  if (ranks[0].communicator->rank() == 0) {
    activity.Begin("set-up");
    pulse = std::make_unique<Pulse>(&console, &activity);
  }
  absl::StatusOr<RunData> data = absl::UnknownError("not opened yet");
  const RunInputs inputs{&program, &kernels, &config,
                         &data,    &console, &activity};
  const auto open = [&] {
    data = OpenRunData(program, config);
    if (data.ok() && data->test == nullptr) {
      data = ModelError("--data ", config.data,
                        ": has no test split; name one with --eval-data");
    }
  };
  std::vector<absl::StatusOr<EvalReport>> reports(ranks.size(), EvalReport());
  std::vector<std::thread> threads;
  for (size_t r = 1; r < ranks.size(); ++r) {
    threads.emplace_back(
        [&, r] { reports[r] = EvaluateRank(inputs, ranks[r], nullptr); });
  }
  reports[0] = EvaluateRank(inputs, ranks[0], open);
  for (std::thread& thread : threads) thread.join();
  std::vector<absl::Status> results;
  for (const auto& report : reports) results.push_back(report.status());
  HT_RETURN_IF_ERROR(Culprit(results));
  return reports[0];
}

}  // namespace runtime
}  // namespace halftone
