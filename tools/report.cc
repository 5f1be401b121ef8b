// halftone report: a page about runs.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "graph/base/output_file.h"
#include "graph/base/text.h"
#include "tools/common/command_line.h"
#include "tools/report/run_page.h"
#include "tools/report/run_verdict.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct ReportFlags {
  std::vector<std::string> runs;
  std::string out;
  bool json = false;
};

absl::Status Report(const ReportFlags& flags) {
  std::vector<RunHistory> runs;
  for (const std::string& directory : flags.runs) {
    HT_ASSIGN_OR_RETURN(RunHistory run, ReadRunHistory(directory));
    runs.push_back(std::move(run));
  }
  if (flags.json) {
    Show(RunPageJson(runs), stdout);
    return absl::OkStatus();
  }
  const std::string page = RunPage(runs);
  if (flags.out.empty()) {
    Show(page, stdout);
    return absl::OkStatus();
  }
  HT_RETURN_IF_ERROR(WriteOutput(flags.out, page));
  std::string went;
  for (const RunHistory& run : runs) {
    const std::string text = Text(VerdictOf(run, runs));
    if (text.empty()) continue;
    absl::StrAppend(&went, "run      ", run.directory, " ", text, "\n");
  }
  ShowReport(absl::StrCat(went, "report   ", flags.out, ": ",
                          HumanBytes(static_cast<int64_t>(page.size())),
                          ", opens in any browser, from disk\n"),
             stderr);
  return absl::OkStatus();
}

}  // namespace

void AddReport(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<ReportFlags>();
  Verb verb = app.AddVerb(
      "report", "a page about runs: curves, speed, memory",
      "examples:\n"
      "  halftone report runs/mnist -o mnist.html\n"
      "  halftone report runs/o0 runs/o1 -o both.html\n"
      "  halftone report runs/mnist --json\n\n"
      "Loss, metrics, learning rate, loss scale and skipped steps, gradient\n"
      "norm, step time and its parts, memory and per-op cost of a run, or of\n"
      "several side by side: one page of HTML that needs no network. A run\n"
      "that goes on is shown as far as it is. Says of each whether it trains,\n"
      "stands still, diverged or falls behind the best, and what its log has\n"
      "to say why: with gradients' exponents (run --fetch) also what f16 made "
      "0.");
  verb.AddOption("runs", &flags->runs, "run directories (run --out)")
      .Required();
  Flag out =
      verb.AddOption("-o,--out", &flags->out, "file; default: stdout").Writes();
  verb.AddSwitch("--json", &flags->json, "one JSON object instead")
      .Excludes(out);
  verb.SetRun([flags, outcome] { outcome->status = Report(*flags); });
}

}  // namespace tools
}  // namespace halftone
