// halftone compare: what precision does to a program's values.
#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "graph/base/output_file.h"
#include "tools/common/command_line.h"
#include "tools/common/run_flags.h"
#include "tools/common/show_answer.h"
#include "tools/compare/compare_facts.h"
#include "tools/compare/compare_report.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct CompareFlags {
  ComparedModelsFlags models;
  RankFlags ranks;
  runtime::TrainConfig config;
  runtime::CompareOptions options;
  bool best = false, json = false;
  std::string only, tolerance, html;
  CompareFacts facts;
};

absl::Status CheckFlags(CompareFlags& flags) {
  if (!flags.only.empty() && flags.only != "isolated" &&
      flags.only != "chained") {
    return UsageError("--only ", flags.only, ": expected isolated or chained");
  }
  flags.options.isolated = flags.only != "chained";
  flags.options.chained = flags.only != "isolated";
  flags.facts.has_tolerance = !flags.tolerance.empty();
  if (!flags.facts.has_tolerance) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(flags.facts.bound,
                      runtime::ParseErrorBound(flags.tolerance));
  return absl::OkStatus();
}

absl::Status Compare(CompareFlags& flags, int* exit_code) {
  HT_RETURN_IF_ERROR(CheckFlags(flags));
  // Whatever a launcher's variables say.
  if (flags.ranks.gpus.empty()) flags.ranks.ranks = 1;
  CompareFacts& facts = flags.facts;
  const std::string& one = flags.models.compared.path;
  const std::string& other = flags.models.against;
  const bool fed = !flags.config.data.empty();
  if (IsArrays(one) != IsArrays(other)) {
    return UsageError("compare ", one, " ", other,
                      ": an .npz file is compared with another one alone");
  }
  const bool files = IsArrays(one) || (!fed && AreRuns(one, other));
  if (!files && !fed) {
    return UsageError("compare ", one, ": --data says what the programs are ",
                      "to be fed with");
  }
  HT_RETURN_IF_ERROR(files
                         ? CompareFiles(one, other, &facts)
                         : CompareModels(flags.models, flags.ranks, flags.best,
                                         flags.config, flags.options, &facts));
  for (const std::string& line : facts.comparison.said) {
    ShowReport(absl::StrCat("note      ", line, "\n"), stderr);
  }
  if (!flags.html.empty()) {
    HT_RETURN_IF_ERROR(WriteOutput(flags.html, CompareHtml(facts)));
  }
  const std::string text = flags.json ? CompareJson(facts) : CompareText(facts);
  ShowAnswer(text, flags.json);
  if (facts.exceeding() > 0) *exit_code = static_cast<int>(ExitCode::kDiffer);
  return absl::OkStatus();
}

}  // namespace

void AddCompare(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<CompareFlags>();
  Verb verb = app.AddVerb(
      "compare", "what precision does to a program's values",
      "examples:\n"
      "  halftone compare mnist.htc --against O0 --data idx:models/digits\n"
      "  halftone compare a.htc b.htc --data idx:models/digits --batches 4\n"
      "  halftone compare runs/mnist --against O0 --data idx:models/digits \\\n"
      "      --html compare.html --tolerance 0.05\n"
      "  halftone compare a.npz b.npz\n"
      "  halftone compare runs/a runs/b --json\n\n"
      "Runs the same batches through two programs of one model, forward and\n"
      "backward, and measures each value against the reference's: of each op\n"
      "alone, fed with the reference's values in its own dtypes, and chained,\n"
      "each program on its own. Two .npz files are compared by name; two runs\n"
      "without --data by their parameters and metrics. Exit 3: above the\n"
      "tolerance, or not of one model.");
  AddComparedModelsFlags(verb, &flags->models);
  AddDataFlags(verb, &flags->config).Required(false);
  AddParameterFlags(verb, &flags->best, &flags->config);
  verb.AddOption("--batches", &flags->options.batches, "how many (default 1)")
      .InRange(1, 1000000);
  verb.AddOption("--only", &flags->only,
                 "isolated | chained: measure that alone");
  verb.AddOption("--tolerance", &flags->tolerance,
                 "[MEASURE:]NUMBER: exit 3 where a value is above it: error\n"
                 "(relative, the default), max_abs, max_rel, ulps, cosine");
  verb.AddSwitch("--all", &flags->facts.all, "all values, not the worst ten");
  verb.AddOption("--html", &flags->html, "a page for all of them").Writes();
  verb.AddSwitch("--json", &flags->json, "one JSON object");
  AddDeviceFlags(verb, &flags->ranks);
  verb.SetRun([flags, outcome] {
    outcome->status = Compare(*flags, &outcome->exit_code);
  });
}

}  // namespace tools
}  // namespace halftone
