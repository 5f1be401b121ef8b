// What happens between steps: evals, checkpoints, and the end by the stop rule.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/out_of_memory.h"
#include "graph/base/shell_word.h"
#include "graph/base/text.h"
#include "graph/ir/well_known.h"
#include "runtime/train/compare_ranks.h"
#include "runtime/train/long_work.h"
#include "runtime/train/non_finite.h"
#include "runtime/train/rank_cells.h"
#include "runtime/train/rank_loop.h"
#include "runtime/train/run_directory.h"
#include "runtime/train/run_facts.h"
#include "runtime/train/state.h"

namespace halftone {
namespace runtime {
namespace {

// The run's last state cannot be written: what is left, and how to go on.
absl::Status CannotBeLast(const RunDirectory& directory,
                          const absl::Status& written) {
  std::string rest = "there is no earlier one";
  for (const CheckpointInfo& info : ListCheckpoints(directory.checkpoints())) {
    if (!info.complete) continue;
    rest = absl::StrCat("make room, and --resume goes on from ", info.path);
    break;
  }
  return CheckpointError("no checkpoint at the end: ", written.message(), "; ",
                         rest);
}

}  // namespace

absl::Status RankLoop::Evaluate() {
  if (rank_.evaluator == nullptr) return absl::OkStatus();
  Begin("eval", rank_.evaluator->samples());
  const Doing doing("evaluating");
  const Stopwatch watch;
  HT_ASSIGN_OR_RETURN(
      const EvalReport report,
      rank_.evaluator->Run(reporter_ == nullptr ? nullptr
                                                : rank_.inputs.activity));
  const Program& program = executor_.program();
  progress_.Add(report, program.metrics.empty() ? "" : program.metrics[0].name);
  times_.eval_seconds += watch.seconds();
  if (reporter_ != nullptr) reporter_->Evaluated(progress_);
  return absl::OkStatus();
}

absl::Status RankLoop::Compare() {
  const Doing doing("comparing the ranks");
  const absl::Status same =
      CompareRanks(executor_, rank_.communicator(),
                   absl::StrCat("after step ", progress_.step));
  ranks_differ_ = ExitCodeOf(same) == ExitCode::kDiffer;
  return same;
}

absl::Status RankLoop::WriteCheckpoint(bool last) {
  const RunDirectory directory(config_.out);
  if (!directory.exists()) return absl::OkStatus();
  Begin("checkpoint");
  const Doing doing("writing a checkpoint");
  checkpoint_step_ = progress_.step;
  if (!rank_.is_zero()) {
    HT_RETURN_IF_ERROR(GiveShards(executor_));
    HT_RETURN_IF_ERROR(GatherCellsOfRanks(executor_, nullptr));
    return DoLongWork(rank_.communicator(), nullptr);
  }
  const Stopwatch watch;
  Checkpoint checkpoint;
  Manifest& manifest = checkpoint.manifest;
  manifest.step = progress_.step;
  manifest.epoch = progress_.epoch;
  manifest.sample = progress_.sample;
  manifest.world_size = rank_.sampler.world_size;
  manifest.level = config_.strategy.amp().level();
  manifest.fingerprint = config_.fingerprint;
  manifest.state_signature = config_.state_signature;
  manifest.tuning_hash = executor_.tuning().Hash();
  manifest.seed = config_.strategy.train().seed();
  manifest.numbers = ToNumbers(progress_);
  manifest.numbers[kDynamicScaling] =
      config_.strategy.amp().loss_scaling().use_dynamic_loss_scaling() ? 1 : 0;
  manifest.numbers[kThreads] = rank_.threads;
  const std::string& marks = rank_.data().marks;
  if (!marks.empty()) manifest.texts[kDataMarks] = marks;
  const std::vector<std::string>& classes = rank_.data().opened.classes;
  if (!classes.empty()) manifest.texts[kClasses] = ClassesToText(classes);
  for (const auto& [name, value] : SettingsOf(rank_)) {
    manifest.texts[absl::StrCat(kSetting, name)] = value;
  }
  stop_rule_.Save(&manifest.numbers);
  HT_ASSIGN_OR_RETURN(checkpoint.tensors, ReadState(executor_));
  HT_RETURN_IF_ERROR(GatherCellsOfRanks(executor_, &checkpoint.tensors));
  absl::Status written, is_ours;
  HT_RETURN_IF_ERROR(DoLongWork(rank_.communicator(), [&] {
    const Doing doing("writing a checkpoint");
    is_ours = rank_.lock.Check();
    if (!is_ours.ok()) return absl::OkStatus();
    written = runtime::WriteCheckpoint(
        directory.checkpoints(), checkpoint, config_.keep_checkpoints,
        progress_.best_step, &sound_checkpoints_);
    return absl::OkStatus();
  }));
  times_.checkpoint_seconds += watch.seconds();
  // Nothing more that such a run makes can be kept: it ends, by this rank's
  // error, or at the end by one that all ranks have.
  if (!is_ours.ok() && !last) return is_ours;
  if (!is_ours.ok()) {
    last_checkpoint_ = is_ours;
  } else if (written.ok()) {
    reporter_->CheckpointWritten(progress_);
    if (config_.on_checkpoint) config_.on_checkpoint(progress_.step);
  } else if (last) {
    last_checkpoint_ = CannotBeLast(directory, written);
  } else {
    reporter_->Warn(absl::StrCat("step ", progress_.step, ": no checkpoint: ",
                                 written.message(), "; training goes on"));
  }
  return absl::OkStatus();
}

// The first op whose output was not finite, on whatever rank; empty if the
// replay finds none.
absl::StatusOr<NonFinite> RankLoop::FirstNonFiniteOp() {
  HT_ASSIGN_OR_RETURN(const NonFinite mine, executor_.FirstNonFinite());
  HT_ASSIGN_OR_RETURN(
      const FirstOfRanks first,
      FindFirst(mine, executor_.program(), rank_.communicator()));
  return first.found;
}

absl::Status RankLoop::Diverged() {
  // Ranks that differ are the better reason, where they are to be equal.
  if (rank_.bindings.average < 0) HT_RETURN_IF_ERROR(Compare());
  const StepRecord& record = stop_rule_.record();
  NonFiniteOp op;
  // The replay runs the last step: exact if nothing was applied since. Where
  // the loss alone is not finite, steps are applied, and it is as a rule not
  // finite in the last one either.
  std::string capsule;
  if (rejected_since_ || !record.found_inf) {
    HT_ASSIGN_OR_RETURN(const NonFinite found, FirstNonFiniteOp());
    if (record.found_inf) {
      HT_ASSIGN_OR_RETURN(capsule, WriteCapsule(stop_rule_.why(), found));
    }
    if (!found.op.empty()) {
      op = DescribeNonFinite(
          executor_.program(), found,
          config_.model_ops ? config_.model_ops() : std::vector<std::string>());
    }
  }
  std::string first;
  if (!op.text.empty()) {
    first = absl::StrCat(
        "first non-finite op: ", op.text,
        attempted_ == record.step ? "" : absl::StrCat(" in step ", attempted_),
        "; ");
  } else if (record.found_inf) {
    const SkipNames names(executor_.program());
    first = absl::StrCat(names.IsNorm(record.first_bad)
                             ? "the gradients' norm overflows f32, for the "
                               "most part by "
                             : "first bad gradient: ",
                         names.NameOf(record.first_bad), "; ");
  }
  return DivergedError(
      "training diverged at step ", record.step, " (epoch ", record.epoch,
      "): ", stop_rule_.why(), "; loss ",
      ExactFloat(static_cast<float>(record.loss())), "; ", first, "loss scale ",
      stop_rule_.ScaleHistory(), WhatToTry(config_, record, op),
      capsule.empty()
          ? ""
          : absl::StrCat("; step ", attempted_, " again: halftone replay ",
                         ShellWord(capsule)));
}

}  // namespace runtime
}  // namespace halftone
