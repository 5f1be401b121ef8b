// halftone lint: what about a model is worth a second look.
#include <memory>

#include "graph/base/error.h"
#include "tools/common/command_line.h"
#include "tools/common/model_flags.h"
#include "tools/common/show_answer.h"
#include "tools/report/fail_on.h"
#include "tools/report/lint_report.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct LintFlags {
  ModelFlags model;
  FailOn fail_on;
  bool json = false;
};

absl::Status Lint(const LintFlags& flags, int* exit_code) {
  HT_ASSIGN_OR_RETURN(const CompiledModel model,
                      LoadOrCompile(flags.model, /*may_recompile=*/true));
  HT_ASSIGN_OR_RETURN(const ModelFacts facts, FactsOf(model));
  ShowAnswer(flags.json ? LintJson(facts) : LintText(facts), flags.json);
  *exit_code = ShowFailures(flags.fail_on, facts);
  return absl::OkStatus();
}

}  // namespace

void AddLint(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<LintFlags>();
  Verb verb = app.AddVerb(
      "lint", "what about a model is worth a second look",
      "examples:\n"
      "  halftone lint models/mnist_convnet.pbtxt --level O1\n"
      "  halftone lint mnist.htc --fail-on 'standalone>0, lint:N*'\n"
      "  halftone lint mnist.htc --json\n\n"
      "Numbers that a low dtype does not hold, casts that cost more than they\n"
      "save, dims that tensor cores do not take, parameters and settings\n"
      "without effect: each with a code that halftone explain has a page for,\n"
      "and the line of the model's file. Exits with 0 unless --fail-on says\n"
      "otherwise.");
  AddModelFlags(verb, &flags->model);
  AddFailOnFlag(verb, &flags->fail_on);
  verb.AddSwitch("--json", &flags->json, "one JSON object");
  verb.SetRun([flags, outcome] {
    outcome->status = Lint(*flags, &outcome->exit_code);
  });
}

}  // namespace tools
}  // namespace halftone
