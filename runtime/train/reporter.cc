#include "runtime/train/reporter.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "runtime/log/trace_file.h"
#include "runtime/report/console_report.h"
#include "runtime/report/metrics_log.h"
#include "runtime/report/summary.h"
#include "runtime/report/tensorboard_log.h"
#include "runtime/train/program_graph.h"
#include "runtime/train/resolve_fetches.h"
#include "runtime/train/run_directory.h"
#include "runtime/train/run_facts.h"

namespace halftone {
namespace runtime {

namespace {

// 1, 2, ...: that of the last sample.
int64_t EpochOf(const Progress& progress) {
  return progress.sample > 0 ? progress.epoch + 1 : progress.epoch;
}

}  // namespace

Reporter::Reporter(const Rank& rank)
    : rank_(rank), config_(rank.config()), skip_names_(*rank.inputs.program) {}

absl::StatusOr<std::unique_ptr<Reporter>> Reporter::Create(const Rank& rank) {
  auto reporter = absl::WrapUnique(new Reporter(rank));
  HT_RETURN_IF_ERROR(reporter->Open());
  return reporter;
}

absl::Status Reporter::Open() {
  const RunDirectory directory(config_.out);
  HT_ASSIGN_OR_RETURN(fetches_,
                      ResolveFetches(*rank_.inputs.program, config_.fetches));
  for (const Fetch& fetch : fetches_) {
    if (fetch.kind == Fetch::Kind::kNpz && !directory.exists()) {
      return UsageError("--fetch ", fetch.text,
                        ": arrays are written into the run directory; add "
                        "--out");
    }
  }
  fetch_cost_.exponents_alone = absl::c_all_of(
      fetches_,
      [](const Fetch& fetch) { return fetch.kind == Fetch::Kind::kExponents; });
  report_.Add(
      std::make_unique<ConsoleReport>(rank_.inputs.console, config_.json));
  if (directory.exists()) {
    HT_RETURN_IF_ERROR(rank_.lock.Check());
    HT_RETURN_IF_ERROR(directory.Create(config_, rank_.executor->tuning()));
    HT_ASSIGN_OR_RETURN(
        auto metrics,
        MetricsLog::Open(directory.metrics(),
                         rank_.start.resumed ? rank_.progress.step : -1));
    scale_events_ = metrics->kept_scale_events();
    report_.Add(std::move(metrics));
    HT_ASSIGN_OR_RETURN(auto tensorboard,
                        TensorBoardLog::Create(directory.path()));
    report_.Add(std::move(tensorboard));
    report_.Add(std::make_unique<SummaryFile>(
        directory.path(), [this] { return rank_.lock.Check(); }));
  }
  report_.Emit(StartOf(rank_));
  if (directory.exists()) report_.Emit(GraphOf(*rank_.inputs.program));
  if (config_.restart.has_value()) {
    RestartEvent restart = *config_.restart;
    restart.step = rank_.progress.step;
    report_.Emit(restart);
  }
  report_.Flush();
  return absl::OkStatus();
}

void Reporter::Step(const StepRecord& record, const RunningLoss& since,
                    const EventTimes& times, const StepView& view,
                    bool fetches) {
  StepEvent event = StateOf(record, since, times);
  if (fetches) {
    const Stopwatch watch;
    const auto directory = [&]() -> absl::StatusOr<std::string> {
      HT_RETURN_IF_ERROR(rank_.lock.Check());
      return RunDirectory(config_.out).fetches();
    };
    ArraysWritten(
        TakeFetches(fetches_, view, record.scale_before, directory, &event));
    fetch_cost_.seconds += watch.seconds();
    ++fetch_cost_.steps;
  }
  event.parts = PartsOf(*rank_.inputs.program, record, view);
  report_.Emit(event);
  report_.Flush();
}

void Reporter::ShowProgress(const StepRecord& record, const RunningLoss& since,
                            const EventTimes& times) {
  report_.Emit(ProgressEvent{StateOf(record, since, times)});
}

void Reporter::Skipped(const StepRecord& record, const StepView& view) {
  SkipEvent event;
  event.step = record.step;
  event.epoch = record.epoch;
  event.first_bad = skip_names_.Describe(record.first_bad, view);
  event.bad_steps = record.bad_steps;
  event.scale_before = record.scale_before;
  event.loss_scaling = record.loss_scaling;
  if (const int part = record.PartAtFault(); part >= 0) {
    event.part = rank_.inputs.program->loss.parts[part].name;
    event.bad_steps = record.parts[part].bad_steps;
    event.scale_before = record.parts[part].before;
    event.loss_scaling = record.parts[part].after;
  }
  report_.Emit(event);
  Record({record.step, record.epoch, /*skipped=*/true, event.first_bad,
          event.scale_before, event.loss_scaling, event.part});
}

void Reporter::ScalesChanged(const StepRecord& record) {
  const auto changed = [&](const std::string& part, float before, float after) {
    if (before == after) return;
    Record({record.step, record.epoch, /*skipped=*/false, "", before, after,
            part});
  };
  if (record.parts.empty()) {
    changed("", record.scale_before, record.loss_scaling);
  }
  for (size_t i = 0; i < record.parts.size(); ++i) {
    changed(rank_.inputs.program->loss.parts[i].name, record.parts[i].before,
            record.parts[i].after);
  }
}

void Reporter::Record(ScaleEvent event) {
  report_.Emit(event);
  report_.Flush();
  scale_events_.Add(std::move(event));
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
  report_.Emit(event);
  report_.Flush();
}

void Reporter::Evaluated(const Progress& progress) {
  EvalEvent event = EvalOf(progress.eval);
  event.step = progress.step;
  event.epoch = EpochOf(progress);
  report_.Emit(event);
  report_.Flush();
}

void Reporter::CheckpointWritten(const Progress& progress) {
  report_.Emit(CheckpointEvent{progress.step, EpochOf(progress)});
  report_.Flush();
}

void Reporter::ArraysWritten(const absl::Status& written) {
  if (written.ok() == !arrays_lost_) return;
  arrays_lost_ = !written.ok();
  Warn(arrays_lost_ ? absl::StrCat(written.message(),
                                   "; training goes on without fetched arrays")
                    : "fetched arrays are written again");
}

absl::Status Reporter::Finish(const RunTimes& times, const Profile* profile,
                              int signal, int exit_code) {
  // What is not this run's directory any more gets nothing of it.
  absl::Status written = rank_.lock.Check();
  if (written.ok() && profile != nullptr && !config_.trace.empty()) {
    written = WriteTrace(config_.trace, profile->Trace(), rank_.sampler.rank);
  }
  RunEnded end = EndOf(rank_, times, profile);
  if (!fetches_.empty()) {
    end.fetches = fetch_cost_;
    end.fetches->seconds += rank_.executor->fetch_seconds();
  }
  end.scale_events = scale_events_.Events();
  end.signal = signal;
  end.exit_code = exit_code;
  return report_.Finish(std::move(end), written);
}

}  // namespace runtime
}  // namespace halftone
