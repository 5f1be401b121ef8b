// halftone inspect: precisions, casts and state of a model.
#include <memory>

#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/ir/well_known.h"
#include "graph/text/text.h"
#include "tools/common/command_line.h"
#include "tools/common/model_flags.h"
#include "tools/common/show_answer.h"
#include "tools/report/fail_on.h"
#include "tools/report/graph_data.h"
#include "tools/report/inspect_html.h"
#include "tools/report/inspect_report.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct InspectFlags {
  ModelFlags model;
  InspectOptions options;
  FailOn fail_on;
  bool json = false, dump = false, html = false, dot = false;
};

absl::Status Inspect(const InspectFlags& flags, int* exit_code) {
  const std::string& entry = flags.model.compile.report_entry;
  if (!entry.empty() && entry != kTrainEntry && entry != kEvalEntry) {
    return UsageError("--entry ", entry, ": expected train or eval",
                      NearestHint(entry, {kTrainEntry, kEvalEntry}));
  }
  HT_ASSIGN_OR_RETURN(const CompiledModel model,
                      LoadOrCompile(flags.model, /*may_recompile=*/true));
  HT_ASSIGN_OR_RETURN(const ModelFacts facts, FactsOf(model, 0, entry));
  std::string text;
  if (flags.dump) {
    text = Print(*model.program);
  } else if (flags.json) {
    HT_ASSIGN_OR_RETURN(text, InspectJson(facts, flags.options.scope));
  } else if (flags.html) {
    text = InspectHtml(facts);
  } else if (flags.dot) {
    HT_ASSIGN_OR_RETURN(text, GraphDot(facts, flags.options.scope));
  } else {
    HT_ASSIGN_OR_RETURN(text, InspectText(facts, flags.options));
  }
  const bool for_people =
      !flags.json && !flags.html && !flags.dump && !flags.dot;
  ShowAnswer(text, !for_people);
  *exit_code = ShowFailures(flags.fail_on, facts);
  return absl::OkStatus();
}

}  // namespace

void AddInspect(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<InspectFlags>();
  Verb verb = app.AddVerb(
      "inspect", "every precision and cast, and why",
      "examples:\n"
      "  halftone inspect mnist.htc\n"
      "  halftone inspect resnet50.pbtxt --strategy s.pbtxt --all\n"
      "  halftone inspect resnet50.htc --scope 'layer3/*'\n"
      "  halftone inspect bert.pbtxt --level O1 --entry train\n"
      "  halftone inspect mnist.htc --html > mnist.html\n"
      "  halftone inspect mnist.htc --dot | dot -Tsvg > mnist.svg\n\n"
      "What every op runs in and why, every inserted cast with its cost and\n"
      "fate, and the state. One screen; --all, --scope, --dump, --html and\n"
      "--dot widen it.");
  AddModelFlags(verb, &flags->model);
  verb.AddSwitch("--all", &flags->options.all, "every op and cast on a line");
  Flag scope = verb.AddOption("--scope", &flags->options.scope,
                              "only ops and casts whose names match");
  verb.AddOption("--entry", &flags->model.compile.report_entry,
                 "train | eval; default: train, or eval where the strategy\n"
                 "has no optimizer");
  AddFailOnFlag(verb, &flags->fail_on);
  Flag dump = verb.AddSwitch("--dump", &flags->dump,
                             "the compiled program in text form");
  Flag html =
      verb.AddSwitch("--html", &flags->html, "one page, self-contained");
  Flag dot = verb.AddSwitch("--dot", &flags->dot, "the graph for Graphviz");
  Flag json = verb.AddSwitch("--json", &flags->json, "one JSON object");
  json.Excludes(dump).Excludes(html).Excludes(dot);
  dump.Excludes(html).Excludes(dot);
  html.Excludes(dot);
  scope.Excludes(dump).Excludes(html);
  verb.SetRun([flags, outcome] {
    outcome->status = Inspect(*flags, &outcome->exit_code);
  });
}

}  // namespace tools
}  // namespace halftone
