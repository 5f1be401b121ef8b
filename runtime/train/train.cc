// Train: a thread per rank of this process.
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/shell_word.h"
#include "graph/base/text.h"
#include "graph/ir/well_known.h"
#include "runtime/report/signs_of_life.h"
#include "runtime/train/fixed_threads.h"
#include "runtime/train/long_work.h"
#include "runtime/train/peers.h"
#include "runtime/train/rank_loop.h"
#include "runtime/train/rank_setup.h"
#include "runtime/train/reporter.h"
#include "runtime/train/run_directory.h"
#include "runtime/train/signals.h"
#include "runtime/train/state.h"
#include "runtime/train/trainer.h"

namespace halftone {
namespace runtime {
namespace {

class RankRun {
 public:
  // `data`: to be opened by the first of a process's ranks; null: by another.
  RankRun(const RunInputs& inputs, const RankResources& resources,
          absl::StatusOr<RunData>* data)
      : data_(data) {
    rank_.inputs = inputs;
    rank_.resources = resources;
    rank_.leads_process = data_ != nullptr;
  }

  // An error of this rank alone ends the others too.
  absl::Status Run() {
    absl::Status status = Train();
    if (!status.ok() && !agreed_) rank_.communicator().Abort(status);
    if (reporter_ != nullptr && loop_ != nullptr) {
      const int exit_code = status.ok() && signal_ != 0
                                ? 128 + signal_
                                : static_cast<int>(ExitCodeOf(status));
      const absl::Status said = reporter_->Finish(
          loop_->times(), loop_->profile(), signal_, exit_code);
      if (status.ok()) status = said;
    }
    return status;
  }
  int signal() const { return signal_; }

 private:
  absl::Status Train() {
    HT_RETURN_IF_ERROR(OpenDataTogether(*rank_.inputs.program, rank_.config(),
                                        /*trained_on=*/true,
                                        rank_.inputs.ranks_here,
                                        rank_.communicator(), data_));
    HT_RETURN_IF_ERROR(SetUpRank(rank_, /*train=*/true, &agreed_));
    HT_RETURN_IF_ERROR(OpenReports());
    loop_ = std::make_unique<RankLoop>(&rank_, reporter_.get());
    HT_RETURN_IF_ERROR(loop_->Run(&agreed_));
    return loop_->stopped() ? ShareSignal() : absl::OkStatus();
  }

  // Rank 0 makes the run directory and its logs before step 1.
  absl::Status OpenReports() {
    absl::Status status;
    HT_RETURN_IF_ERROR(DoLongWork(rank_.communicator(), [&] {
      if (!rank_.is_zero()) return absl::OkStatus();
      auto reporter = Reporter::Create(rank_);
      status = reporter.status();
      if (reporter.ok()) reporter_ = *std::move(reporter);
      return absl::OkStatus();
    }));
    const auto all = Agree(rank_.communicator(), status);
    agreed_ = !all.ok();
    return all.status();
  }

  // One rank may have been told to stop and the others not.
  absl::Status ShareSignal() {
    HT_ASSIGN_OR_RETURN(
        const std::vector<std::string> all,
        rank_.communicator().AllGather(absl::StrCat(SignalCatcher::caught())));
    for (const std::string& one : all) {
      int number = 0;
      if (absl::SimpleAtoi(one, &number) && number > signal_) signal_ = number;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<RunData>* const data_;
  Rank rank_;
  bool agreed_ = false;
  int signal_ = 0;
  std::unique_ptr<Reporter> reporter_;
  std::unique_ptr<RankLoop> loop_;
};

}  // namespace

absl::Status Train(const Program& program,
                   const kernels::KernelRegistry& kernels,
                   const TrainConfig& config,
                   const std::vector<RankResources>& ranks, int* signal) {
  *signal = 0;
  if (program.FindEntry(kTrainEntry) == nullptr && program.loss.var.empty()) {
    return ModelError(program.file, program.file.empty() ? "" : ": ",
                      "the model has no loss, so there is nothing to train; "
                      "add loss { var: \"NAME\" mean_over: \"NAME\" } and "
                      "compile it again");
  }
  if (program.FindEntry(kTrainEntry) == nullptr) {
    // Which flag says it depends on what was given.
    return config.compiled_path.empty()
               ? UsageError(
                     "nothing trains the model: the strategy has no optimizer; "
                     "name a strategy that has one with --strategy FILE, or "
                     "choose it with --set optimizer.sgd= (or another method: "
                     "halftone explain strategy)")
               : UsageError(
                     config.compiled_path,
                     " was compiled without an optimizer: it has no train "
                     "entry; compile it with one: halftone compile ",
                     ShellWord(config.compiled_path),
                     " --strategy FILE -o new.htc, or --set optimizer.sgd= "
                     "instead of --strategy");
  }
  SignalCatcher catcher;
  Console console = Console::Standard();
  Activity activity;
  std::unique_ptr<Pulse> pulse;
  if (ranks[0].communicator->rank() == 0) {
    activity.Begin("set-up");
    const bool keeps = !config.out.empty();
    pulse = std::make_unique<Pulse>(
        &console, &activity, TrainingText, [&activity, keeps] {
          return SignalCatcher::caught() == 0
                     ? ""
                     : StoppingText(activity.now(), keeps);
        });
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
  std::vector<std::unique_ptr<RankRun>> runs;
  for (const RankResources& resources : fixed.ranks()) {
    runs.push_back(std::make_unique<RankRun>(inputs, resources,
                                             runs.empty() ? &data : nullptr));
  }
  std::vector<absl::Status> results(runs.size());
  std::vector<std::thread> threads;
  for (size_t r = 1; r < runs.size(); ++r) {
    threads.emplace_back([&, r] { results[r] = runs[r]->Run(); });
  }
  results[0] = runs[0]->Run();
  for (std::thread& thread : threads) thread.join();
  *signal = runs[0]->signal();
  return Culprit(results);
}

}  // namespace runtime
}  // namespace halftone
