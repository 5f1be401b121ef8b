// halftone diff: what two compiled models do differently.
#include <memory>

#include "graph/base/error.h"
#include "graph/base/output_file.h"
#include "tools/common/command_line.h"
#include "tools/common/model_flags.h"
#include "tools/common/show_answer.h"
#include "tools/report/diff_html.h"
#include "tools/report/diff_report.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct DiffFlags {
  std::string before, after;
  ModelFlags model;  // for both; its path is one of them
  std::string html;
  bool json = false;
};

absl::Status Diff(const DiffFlags& flags, int* exit_code) {
  ModelFlags model_flags = flags.model;
  model_flags.path = flags.before;
  HT_ASSIGN_OR_RETURN(const CompiledModel before,
                      LoadOrCompile(model_flags, /*may_recompile=*/true));
  model_flags.path = flags.after;
  HT_ASSIGN_OR_RETURN(const CompiledModel after,
                      LoadOrCompile(model_flags, /*may_recompile=*/true));
  HT_ASSIGN_OR_RETURN(const Difference difference, DifferenceOf(before, after));
  if (!flags.html.empty()) {
    HT_ASSIGN_OR_RETURN(const std::string page,
                        DiffHtml(before, after, difference));
    HT_RETURN_IF_ERROR(WriteOutput(flags.html, page));
  }
  const std::string text =
      flags.json ? DiffJson(difference) : DiffText(difference);
  ShowAnswer(text, flags.json);
  if (!difference.equal) *exit_code = static_cast<int>(ExitCode::kDiffer);
  return absl::OkStatus();
}

}  // namespace

void AddDiff(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<DiffFlags>();
  Verb verb = app.AddVerb(
      "diff", "what two models do differently",
      "examples:\n"
      "  halftone diff mnist.htc b.htc\n"
      "  halftone diff mnist.htc b.htc --html diff.html\n"
      "  halftone diff runs/a runs/b --json\n"
      "  halftone diff a.pbtxt b.pbtxt --strategy models/mnist_o1.pbtxt\n\n"
      "Compares what programs compute, and settings field by field; not "
      "lines,\n"
      "comments, file formats, times or reports. Exit 0: equal, 3: not.");
  verb.AddOption("before", &flags->before,
                 "model, compiled model, run directory or checkpoint")
      .Required();
  verb.AddOption("after", &flags->after, "another").Required();
  AddStrategyFlags(verb, &flags->model);
  verb.AddOption("--html", &flags->html,
                 "a page, too, that draws both programs as one, with what "
                 "differs marked")
      .Writes();
  verb.AddSwitch("--json", &flags->json, "one JSON object");
  verb.SetRun([flags, outcome] {
    outcome->status = Diff(*flags, &outcome->exit_code);
  });
}

}  // namespace tools
}  // namespace halftone
