#include "runtime/train/rank_loop.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/out_of_memory.h"
#include "graph/ir/train_entries.h"
#include "graph/ir/well_known.h"
#include "runtime/report/signs_of_life.h"
#include "runtime/train/peers.h"
#include "runtime/train/run_facts.h"
#include "runtime/train/signals.h"

namespace halftone {
namespace runtime {
namespace {

int64_t StepsPerEpoch(const Rank& rank) {
  return Sampler(rank.sampler).steps_per_epoch();
}

// The implicit feeds that are the same in every step.
ImplicitFeeds Constant(const proto::Strategy& strategy, const Rank& rank) {
  ImplicitFeeds feeds;
  feeds.seed = strategy.train().seed();
  const proto::LearningRate& rate = strategy.lr();
  double lr = rate.base();
  if (rate.base_batch() > 0) {
    lr *= static_cast<double>(rank.sampler.batch) / rate.base_batch();
  }
  const double steps = StepsPerEpoch(rank);
  feeds.schedule[0] = static_cast<float>(lr);
  feeds.schedule[1] = static_cast<float>(steps * strategy.train().epochs());
  feeds.schedule[2] = static_cast<float>(
      rate.warmup_steps() > 0 ? static_cast<double>(rate.warmup_steps())
                              : rate.warmup_epochs() * steps);
  feeds.steps_per_epoch = static_cast<float>(steps);
  return feeds;
}

}  // namespace

RankLoop::RankLoop(Rank* rank, Reporter* reporter)
    : rank_(*rank),
      reporter_(reporter),
      config_(rank->config()),
      executor_(*rank->executor),
      progress_(rank->progress),
      steps_per_epoch_(StepsPerEpoch(*rank)),
      samples_per_epoch_(Sampler(rank->sampler).samples_per_epoch()),
      total_steps_(TotalSteps(*rank)),
      implicit_(Constant(config_.strategy, *rank)),
      feeds_(*rank->inputs.program->FindEntry(kTrainEntry), rank->data().specs,
             &implicit_),
      local_steps_(config_.strategy.dist()),
      attempted_(progress_.step),
      stop_rule_(
          config_.strategy.train().stop_rule(),
          config_.strategy.amp().loss_scaling().use_dynamic_loss_scaling(),
          config_.strategy.amp().loss_scaling().min_loss_scaling()),
      eval_clock_(config_.eval_every, std::chrono::steady_clock::now()),
      checkpoint_clock_(config_.checkpoint_every,
                        std::chrono::steady_clock::now()),
      compare_clock_(config_.compare_every, std::chrono::steady_clock::now()),
      checkpoint_step_(rank->start.resumed ? progress_.step : -1),
      times_(steps_per_epoch_ * std::max<int64_t>(epochs(), 1)) {
  if (rank->start.resumed) stop_rule_.Restore(rank->start.numbers);
  if (const Entry* entry = rank->inputs.program->FindEntry(kAccumulateEntry)) {
    accumulate_feeds_.emplace(*entry, rank->data().specs, &implicit_);
  }
  if (!config_.profile) return;
  profiled_binding_ = rank_.bindings.steps.Of(rank_.sampler.batch);
  const Device& device = *rank->resources.device;
  profile_ = std::make_unique<Profile>(
      executor_.plan(profiled_binding_), device.Description(),
      FindTarget(device.target()), executor_.tuning());
}

absl::Status RankLoop::Run(bool* agreed) {
  const absl::Status trained = Train();
  if (!trained.ok()) {
    *agreed = ranks_differ_;
    return trained;
  }
  if (!finished_ && !diverged_) diverged_ = stop_rule_.AtEnd();
  if (diverged_) {
    *agreed = true;  // all ranks have come to it by themselves
    return Diverged();
  }
  return AtEnd(agreed);
}

absl::Status RankLoop::Train() {
  if (at_end()) return absl::OkStatus();
  HT_RETURN_IF_ERROR(local_steps_.Restore(executor_));
  if (progress_.eval_due != 0 && !eval_clock_.Never()) {
    HT_RETURN_IF_ERROR(Evaluate());
  }
  ReaderOptions options;
  options.workers = config_.readers;
  options.first_epoch = progress_.epoch;
  // A batch begins where another batch size may not have ended: rather a few
  // samples twice than left out.
  options.first_step = progress_.sample / rank_.sampler.batch;
  options.epochs = epochs();
  reader_ = MakeBatchReader(rank_.data().train, rank_.data().specs,
                            rank_.sampler, options);
  step_watch_.Restart();
  while (!finished_ && !diverged_) {
    HT_ASSIGN_OR_RETURN(const Batch* batch, reader_->Next());
    if (batch == nullptr) break;
    HT_RETURN_IF_ERROR(OneStep(*batch));
  }
  times_.reading = reader_->work();
  reader_.reset();
  return absl::OkStatus();
}

absl::Status RankLoop::OneStep(const Batch& batch) {
  Begin(kTrainStage, total_steps_);
  const Doing doing("training");
  HT_RETURN_IF_ERROR(Enqueue(batch));
  Pending& enqueued = pending_[(enqueued_ - 1) % 3];
  if (enqueued_ - read_ == 3) HT_RETURN_IF_ERROR(ReadOldest());
  if (capsules_ < config_.capsules) HT_RETURN_IF_ERROR(KeepRejected());
  // Behind what runs the step again, on the parameters that it has found; where
  // the run ends with it, that is still to come.
  if (!diverged_) HT_RETURN_IF_ERROR(Average(enqueued));
  const Executor::Times parts = executor_.times();
  NoteDue(enqueued);
  // Ranks that differ have no state to save or to evaluate: that waits.
  const bool pauses =
      diverged_ || (enqueued.equal && (due_.any() || asked_.any()));
  // What the device still has to do is part of the steps' time.
  if (pauses) HT_RETURN_IF_ERROR(executor_.Read(enqueued.ticket).status());

  const double waited = reader_->waited_seconds();
  StepTimes times;
  times.data = (waited - waited_) * 1000;
  times.forward_backward = parts.forward_backward;
  times.communicate = parts.communicate;
  times.update = parts.update;
  times.total = step_watch_.Restart() * 1000;
  waited_ = waited;
  times_.AddStep(times, batch.share.global_count);
  enqueued.host.total = times.total;
  enqueued.host.waited = times.data;

  if (pauses) {
    HT_RETURN_IF_ERROR(Drain());
    if (!diverged_) HT_RETURN_IF_ERROR(AtBoundary());
    step_watch_.Restart();
  }
  return absl::OkStatus();
}

// What this rank asks of all through the step's totals.
float RankLoop::Requests() {
  float requests = SignalCatcher::caught() != 0 ? kAskStop : 0;
  if (rank_.is_zero() && (eval_clock_.ByTime() || checkpoint_clock_.ByTime())) {
    const CadenceClock::Time now = std::chrono::steady_clock::now();
    if (eval_clock_.DueByTime(now)) requests += kAskEval;
    if (checkpoint_clock_.DueByTime(now)) requests += kAskCheckpoint;
  }
  return requests;
}

absl::StatusOr<int64_t> RankLoop::ExecuteParts(const Batch& batch, int last) {
  const Share& share = batch.share;
  const StepCut cut(rank_.sampler, share.global_count, rank_.merged_steps());
  // The most samples of any rank and micro-batch.
  implicit_.largest_count = static_cast<float>(LossElements(
      *rank_.inputs.program->FindEntry(kTrainEntry), cut.largest()));
  for (int64_t i = 0;; ++i) {
    const SampleRange part = cut.At(i);
    implicit_.first_sample = share.first_sample + part.begin;
    implicit_.shard = i;
    if (i + 1 == cut.parts()) {
      return executor_.Execute(last,
                               feeds_.Point(batch, part.begin, part.count));
    }
    HT_RETURN_IF_ERROR(executor_.Accumulate(
        rank_.bindings.steps.Accumulating(share.global_count, i),
        accumulate_feeds_->Point(batch, part.begin, part.count)));
  }
}

absl::Status RankLoop::Enqueue(const Batch& batch) {
  implicit_.stop = Requests();
  Pending& pending = pending_[enqueued_ % 3];
  pending.binding =
      rank_.BindingsAt(attempted_ + 1).Of(batch.share.global_count);
  pending.host.begin = times_.run.seconds() * 1000;
  pending.step = attempted_ + 1;
  pending.epoch = batch.epoch + 1;
  pending.epoch_end = batch.step + 1 == steps_per_epoch_;
  DecideWhatToLog(pending);
  executor_.SetFetching(pending.fetches && reporter_ != nullptr);
  HT_ASSIGN_OR_RETURN(pending.ticket, ExecuteParts(batch, pending.binding));
  ++attempted_;
  pending.next_epoch = batch.epoch + (pending.epoch_end ? 1 : 0);
  pending.next_sample =
      pending.epoch_end ? 0 : (batch.step + 1) * rank_.sampler.batch;
  ++enqueued_;
  return absl::OkStatus();
}

absl::Status RankLoop::Average(Pending& pending) {
  if (rank_.bindings.average < 0) return absl::OkStatus();
  const bool ends = local_steps_.EndsAt(pending.step);
  // What a run leaves behind is what all ranks have made.
  pending.equal = ends || pending.next_epoch >= epochs();
  if (!pending.equal) return absl::OkStatus();
  HT_RETURN_IF_ERROR(executor_.Average(rank_.bindings.average));
  if (!ends || !local_steps_.adapts()) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(const StepView view, executor_.Read(pending.ticket));
  const double steps = view.Scalar(absl::StrCat(kLocalSteps, kNextSuffix));
  local_steps_.Begin(pending.step, static_cast<int64_t>(steps));
  return absl::OkStatus();
}

absl::Status RankLoop::ReadOldest() {
  const Pending& pending = pending_[read_ % 3];
  HT_ASSIGN_OR_RETURN(const StepView view, executor_.Read(pending.ticket));
  ++read_;
  if (pending.binding == profiled_binding_) {
    profile_->Add(executor_.spans(), pending.host);
  }
  const StepRecord record =
      ReadStep(view, pending.step, pending.epoch, progress_.loss_scaling,
               progress_.part_scales);
  progress_.Add(record, pending.next_epoch, pending.next_sample);
  const Asked asked = WhatIsAsked(record.stopped);
  asked_.stop |= asked.stop;
  asked_.checkpoint |= asked.checkpoint;
  asked_.eval |= asked.eval;
  last_rejected_ = record.found_inf;
  if (diverged_) {
    rejected_since_ &= record.found_inf;
  } else {
    diverged_ = stop_rule_.Add(record);
  }
  if (reporter_ != nullptr && record.found_inf) {
    reporter_->Skipped(record, view);
  } else if (reporter_ != nullptr) {
    reporter_->ScalesChanged(record);
    if (!record.loss_is_finite()) {
      reporter_->LossNotFinite(record, stop_rule_.not_finite());
    }
  }
  if (pending.logs) {
    LogStep(record, view, pending.fetches);
  } else if (reporter_ != nullptr) {
    reporter_->ShowProgress(record, progress_.since_event, times_.Means());
  }
  return absl::OkStatus();
}

void RankLoop::DecideWhatToLog(Pending& pending) const {
  const int64_t every = config_.fetch_every;
  pending.logs = pending.epoch_end || pending.step % config_.log_every == 0;
  pending.fetches = !config_.fetches.empty() &&
                    (every > 0 ? pending.step % every == 0 : pending.logs);
  pending.logs |= pending.fetches;
}

void RankLoop::LogStep(const StepRecord& record, const StepView& view,
                       bool fetches) {
  const RunningLoss since = progress_.since_event;
  progress_.since_event = RunningLoss();
  if (since.count > 0) {
    if (!(progress_.first_loss == progress_.first_loss)) {
      progress_.first_loss = since.mean();
    }
    progress_.last_loss = since.mean();
  }
  if (reporter_ == nullptr) return;
  reporter_->Step(record, since, times_.SinceEvent(), view, fetches);
}

absl::Status RankLoop::Drain() {
  while (read_ < enqueued_) HT_RETURN_IF_ERROR(ReadOldest());
  return absl::OkStatus();
}

void RankLoop::NoteDue(const Pending& enqueued) {
  const auto is_due = [&enqueued](const CadenceClock& clock) {
    return clock.DueAtStep(enqueued.step) ||
           (enqueued.epoch_end && clock.DueAtEpoch(enqueued.epoch));
  };
  due_.epoch_end |= enqueued.epoch_end;
  due_.eval |= is_due(eval_clock_);
  due_.checkpoint |= is_due(checkpoint_clock_);
  due_.compare |= is_due(compare_clock_);
}

absl::Status RankLoop::AtBoundary() {
  const Asked asked = std::exchange(asked_, Asked());
  const Due due = std::exchange(due_, Due());
  finished_ = asked.stop;
  // Who stops a run waits for its checkpoint alone.
  if (finished_ && (asked.eval || due.eval)) progress_.eval_due = 1;
  if (finished_ || at_end()) return absl::OkStatus();  // AtEnd does the rest
  const bool checkpoint = asked.checkpoint || due.checkpoint;
  // Ranks that differ leave no checkpoint.
  if (checkpoint || due.compare) HT_RETURN_IF_ERROR(Compare());
  if (asked.eval || due.eval) HT_RETURN_IF_ERROR(Evaluate());
  if (checkpoint) HT_RETURN_IF_ERROR(WriteCheckpoint(/*last=*/false));
  return absl::OkStatus();
}

absl::Status RankLoop::AtEnd(bool* agreed) {
  const absl::Status same = Compare();
  *agreed = ranks_differ_;
  HT_RETURN_IF_ERROR(same);
  if (!finished_ && !eval_clock_.Never() &&
      progress_.eval_step != progress_.step) {
    HT_RETURN_IF_ERROR(Evaluate());
  }
  if (checkpoint_step_ != progress_.step) {
    HT_RETURN_IF_ERROR(WriteCheckpoint(/*last=*/true));
  }
  const auto all = Agree(rank_.communicator(), last_checkpoint_);
  *agreed = !all.ok();
  return all.status();
}

void RankLoop::Begin(const char* stage, int64_t of) {
  const bool trains = stage == kTrainStage;
  // Between steps it is still the last one.
  if (rank_.leads_process && config_.on_activity) {
    config_.on_activity(attempted_ + (trains ? 1 : 0), stage);
  }
  Activity* const activity = rank_.inputs.activity;
  if (reporter_ == nullptr || activity == nullptr) return;
  if (!trains || activity->now().stage != stage) {
    activity->Begin(stage, progress_.epoch, of);
  }
  if (trains) activity->Did(attempted_);
}

}  // namespace runtime
}  // namespace halftone
