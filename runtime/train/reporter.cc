#include "runtime/train/reporter.h"

#include <variant>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_schema.h"
#include "runtime/train/epoch_line.h"

namespace halftone {
namespace runtime {
namespace {

// Bad steps in a row that lower the loss scale; 0 if nothing does.
int64_t BadLimit(const Program& program) {
  const Block& block = program.FindEntry(kTrainEntry)->block();
  for (const OpId id : block.ops()) {
    const Op& op = block.op(id);
    if (op.schema->name() != "update_loss_scaling") continue;
    return std::get<int64_t>(GetAttr(op, "decr_every_n_nan_or_inf"));
  }
  return 0;
}

}  // namespace

Reporter::Reporter(const Rank& rank)
    : rank_(rank),
      config_(rank.config()),
      directory_(config_.out),
      console_(*rank.inputs.console),
      patience_(console_.is_terminal()),
      skip_names_(*rank.inputs.program),
      bad_limit_(
          config_.strategy.amp().loss_scaling().use_dynamic_loss_scaling()
              ? BadLimit(*rank.inputs.program)
              : 0) {}

absl::StatusOr<std::unique_ptr<Reporter>> Reporter::Create(const Rank& rank) {
  auto reporter = absl::WrapUnique(new Reporter(rank));
  HT_RETURN_IF_ERROR(reporter->Open(rank));
  return reporter;
}

absl::Status Reporter::Open(const Rank& rank) {
  HT_ASSIGN_OR_RETURN(fetches_, ParseFetches(config_.fetches));
  ResolveFetches(*rank_.inputs.program, &fetches_);
  for (const Fetch& fetch : fetches_) {
    if (fetch.kind == Fetch::Kind::kNpz && !directory_.exists()) {
      return UsageError("--fetch ", fetch.text,
                        ": arrays are written into the run directory; add "
                        "--out");
    }
  }
  if (directory_.exists()) {
    HT_RETURN_IF_ERROR(directory_.Create(config_, rank.executor->tuning()));
    HT_ASSIGN_OR_RETURN(
        log_, MetricsLog::Open(directory_.metrics(),
                               rank.start.resumed ? rank.progress.step : -1));
    HT_ASSIGN_OR_RETURN(events_, EventFile::Create(directory_.path()));
  }
  console_.Message(DataLine(rank));
  for (const std::string& line : config_.notes) console_.Message(line);
  for (const std::string& line : rank.start.said) console_.Message(line);
  if (rank.start.resumed) console_.Message(ResumeLine(rank));
  checkpoint_ = rank.start.resumed ? rank.progress.step : -1;
  return absl::OkStatus();
}

StepEvent Reporter::EventOf(const StepRecord& record,
                            const RunningLoss& since) const {
  StepEvent event;
  event.step = record.step;
  event.applied = record.applied;
  event.epoch = record.epoch;
  event.loss = static_cast<float>(since.mean());
  event.n = static_cast<int64_t>(since.count);
  event.skipped = since.skipped;
  event.not_finite = since.not_finite;
  event.lr = record.lr;
  event.loss_scaling = record.loss_scaling;
  event.good_steps = record.good_steps;
  event.bad_steps = record.bad_steps;
  event.found_inf = record.found_inf;
  event.grad_norm = record.grad_norm;
  return event;
}

bool Reporter::WantsProgress() const {
  return patience_.IsDue(Patience::Clock::now(), console_.last_line());
}

void Reporter::ShowProgress(const StepRecord& record, const RunningLoss& since,
                            const EventTimes& times) {
  console_.Progress(
      EpochLine(rank_, EventOf(record, since), times, console_.room()));
  patience_.Shown();
}

absl::Status Reporter::Step(const StepRecord& record, const RunningLoss& since,
                            const EventTimes& times, const StepView& view) {
  StepEvent event = EventOf(record, since);
  const StepTimes& ms = times.per_step;
  event.ms = {{"step", ms.total},
              {"data", ms.data},
              {"fwd_bwd", ms.forward_backward},
              {"comm", ms.communicate},
              {"update", ms.update},
              {"other", ms.other()}};
  if (!KnowsParts(rank_)) {
    event.ms.back().second = 0;
    event.ms.emplace_back("device", ms.total - ms.data);
  }
  absl::Status arrays;
  event.fetches =
      TakeFetches(fetches_, view, record.step, directory_.fetches(), &arrays);
  ArraysWritten(arrays);
  console_.Progress(EpochLine(rank_, event, times, console_.room()));
  const std::string fetched = FetchLine(event);
  if (!fetched.empty()) console_.Message(fetched);
  if (log_ == nullptr) return absl::OkStatus();
  events_->AddScalar("loss", event.step, event.loss);
  events_->AddScalar("skipped", event.step, static_cast<float>(event.skipped));
  events_->AddScalar("lr", event.step, event.lr);
  events_->AddScalar("loss_scaling", event.step, event.loss_scaling);
  events_->AddScalar("grad_norm", event.step, event.grad_norm);
  for (const auto& [name, values] : event.fetches) {
    if (values.size() == 1) events_->AddScalar(name, event.step, values[0]);
  }
  Logged(log_->Write(event));
  return absl::OkStatus();
}

absl::Status Reporter::Skipped(const StepRecord& record, const StepView& view) {
  SkipEvent event;
  event.step = record.step;
  event.epoch = record.epoch;
  event.first_bad = skip_names_.Describe(record.first_bad, view);
  event.bad_steps = record.bad_steps;
  event.loss_scaling = record.loss_scaling;
  console_.Message(SkipLine(event, record.scale_before, bad_limit_));
  if (log_ != nullptr) Logged(log_->Write(event));
  return absl::OkStatus();
}

void Reporter::LossNotFinite(const StepRecord& record, int64_t in_a_row) {
  const int64_t limit = config_.strategy.train().stop_rule().loss_not_finite();
  if (limit <= 0 && in_a_row > 1) return;  // it may go on so for ever
  NotFiniteEvent event;
  event.step = record.step;
  event.epoch = record.epoch;
  event.loss = static_cast<float>(record.loss());
  event.applied = !record.found_inf;
  event.in_a_row = in_a_row;
  console_.Message(LossLine(event, limit));
  if (log_ != nullptr) Logged(log_->Write(event));
}

absl::Status Reporter::Evaluated(const Progress& progress) {
  EvalEvent event;
  event.step = progress.step;
  event.epoch = progress.sample > 0 ? progress.epoch + 1 : progress.epoch;
  event.loss = static_cast<float>(progress.eval.loss);
  for (const auto& [name, metric] : progress.eval.metrics) {
    event.metrics.push_back(
        {name, metric.total > 0 ? metric.correct / metric.total : 0,
         static_cast<int64_t>(metric.correct),
         static_cast<int64_t>(metric.total)});
  }
  console_.Message(EvalLine(event));
  if (log_ == nullptr) return absl::OkStatus();
  events_->AddScalar("eval/loss", event.step, event.loss);
  for (const EvalEvent::Metric& metric : event.metrics) {
    events_->AddScalar(absl::StrCat("eval/", metric.name), event.step,
                       static_cast<float>(metric.value));
  }
  Logged(log_->Write(event));
  return absl::OkStatus();
}

void Reporter::Warn(const std::string& text) {
  console_.Message(absl::StrCat("warning  ", text));
}

void Reporter::ArraysWritten(const absl::Status& written) {
  if (written.ok() == !arrays_lost_) return;
  arrays_lost_ = !written.ok();
  Warn(arrays_lost_ ? absl::StrCat(written.message(),
                                   "; training goes on without fetched arrays")
                    : "fetched arrays are written again");
}

void Reporter::Logged(absl::Status written) {
  written.Update(events_->Flush());
  if (written.ok() == !logs_wait_) return;
  logs_wait_ = !written.ok();
  Warn(logs_wait_ ? absl::StrCat(written.message(),
                                 "; training goes on, and lines wait for room")
                  : "the lines that waited for room are written");
}

absl::Status Reporter::Finish(EndOfRun end) {
  end.checkpoint = checkpoint_;
  // First, for what is reported below says how the run ended.
  absl::Status status;
  if (end.profile != nullptr && !config_.trace.empty()) {
    status =
        WriteTrace(config_.trace, end.profile->Trace(), rank_.sampler.rank);
  }
  if (directory_.exists()) {
    status.Update(log_->Flush());
    status.Update(events_->Flush());
  }
  if (!status.ok() && end.exit_code == 0) {
    end.exit_code = static_cast<int>(ExitCodeOf(status));
  }
  if (config_.json) {
    console_.Report(SummaryJson(end));
  } else if (end.exit_code == 0 || end.signal != 0) {
    for (const std::string& line : EndLines(end)) console_.Report(line);
  }
  if (!directory_.exists()) return status;
  status.Update(directory_.WriteSummary(SummaryJson(end)));
  return status;
}

}  // namespace runtime
}  // namespace halftone
