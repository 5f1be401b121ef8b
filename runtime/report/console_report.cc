#include "runtime/report/console_report.h"

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/display.h"
#include "runtime/report/epoch_line.h"
#include "runtime/report/fetch_line.h"
#include "runtime/report/profile_text.h"
#include "runtime/report/report_text.h"
#include "runtime/report/summary.h"

namespace halftone {
namespace runtime {

ConsoleReport::ConsoleReport(Console* console, bool json)
    : console_(*console), json_(json), patience_(console->is_terminal()) {}

void ConsoleReport::On(const RunStarted& run) {
  run_ = run;
  console_.Message(DataLine(run));
  for (const std::string& note : run.notes) console_.Message(note);
  if (!run.resumed.has_value()) return;
  console_.Message(ResumeLine(run, *run.resumed));
  checkpoint_ = run.resumed->step;
}

void ConsoleReport::On(const StepEvent& event) {
  console_.Progress(EpochLine(run_, event, console_.room()));
  const std::string fetched = FetchLine(event);
  if (!fetched.empty()) console_.Message(fetched);
}

void ConsoleReport::On(const ProgressEvent& event) {
  if (!patience_.IsDue(Patience::Clock::now(), console_.last_line())) return;
  console_.Progress(EpochLine(run_, event.state, console_.room()));
  patience_.Shown();
}

void ConsoleReport::On(const SkipEvent& event) {
  const proto::LossScaling& scaling = run_.strategy.amp().loss_scaling();
  console_.Message(SkipLine(event, scaling.use_dynamic_loss_scaling()
                                       ? scaling.decr_every_n_nan_or_inf()
                                       : 0));
}

void ConsoleReport::On(const NotFiniteEvent& event) {
  console_.Message(
      LossLine(event, run_.strategy.train().stop_rule().loss_not_finite()));
}

void ConsoleReport::On(const EvalEvent& event) {
  evaluated_ = true;
  console_.Message(EvalLine(event));
}

void ConsoleReport::On(const WarningEvent& event) {
  console_.Message(absl::StrCat("warning  ", event.text));
}

void ConsoleReport::On(const RunEnded& end) {
  if (json_) return console_.Report(SummaryJson(run_, end));
  if (end.exit_code != 0 && end.signal == 0) return;
  console_.Report(DoneLine(run_, end));
  const std::string speed = SpeedLine(run_, end);
  if (!speed.empty()) console_.Report(speed);
  const std::string reading = ReadingLine(run_, end);
  if (!reading.empty()) console_.Report(reading);
  const std::string fetching = FetchCostLine(end);
  if (!fetching.empty()) console_.Report(fetching);
  const bool has_summary =
      run_.out.empty() || !KeepsSummary(run_, end, evaluated_, run_.out);
  console_.Report(MemoryLine(run_, end, checkpoint_, has_summary));
  if (!end.profile.has_value()) return;
  console_.Report(
      absl::StripSuffix(ProfileText(*end.profile, ColumnsOf(stdout)), "\n"));
}

}  // namespace runtime
}  // namespace halftone
