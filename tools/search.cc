// halftone search: which ops must stay f32, by training.
#include <memory>

#include "graph/base/error.h"
#include "tools/common/command_line.h"
#include "tools/search/precision_search.h"
#include "tools/search/search_report.h"
#include "tools/search/trial_flags.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

constexpr char kSearch[] = "search";

struct SearchFlags : TrialFlags {
  bool within_lists = false;
};

absl::Status Search(SearchFlags& flags) {
  HT_RETURN_IF_ERROR(FillTarget(&flags));
  HT_ASSIGN_OR_RETURN(const CompiledModel model,
                      LoadOrCompile(flags.model, /*may_recompile=*/true));
  HT_ASSIGN_OR_RETURN(
      const Tolerance tolerance,
      ParseTolerance(flags.tolerance, *model.program, /*values=*/false));
  const Metric& metric = tolerance.metric;
  HT_ASSIGN_OR_RETURN(KeptResults kept,
                      OpenResults(kSearch, flags, model, metric, {}));
  HT_ASSIGN_OR_RETURN(const TrainingRuns runs,
                      MakeTrainingRuns(kSearch, flags, metric, kept));
  Trials trials({metric, flags.runs,
                 [&runs](const CompiledModel& tried, int64_t seed) {
                   return runs.Run(tried, seed);
                 },
                 SayTrial},
                &kept);
  HT_ASSIGN_OR_RETURN(
      const SearchAnswer answer,
      SearchPrecision(model, tolerance, flags.within_lists, &trials));
  return ShowFound(flags, SearchText(answer, tolerance, flags.runs, trials),
                   SearchJson(answer, tolerance, flags.runs, trials));
}

}  // namespace

void AddSearch(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<SearchFlags>();
  Verb verb = app.AddVerb(
      kSearch, "which ops must stay f32, by training",
      "examples:\n"
      "  halftone search models/mnist_convnet.pbtxt \\\n"
      "      --strategy models/mnist_o1.pbtxt --data idx:models/digits \\\n"
      "      --tolerance top1:0.2 --runs 3 --out searches/mnist\n\n"
      "Trains the model in f32, then with as many ops low as can be, and "
      "finds\n"
      "the fewest ops that have to be f32 for the metric to stay within the\n"
      "tolerance of f32's: delta debugging over measured runs. Prints them as\n"
      "a strategy. The same command goes on where it was stopped.");
  AddTrialFlags(verb, flags.get(),
                "METRIC:NUMBER: percentage points (top1:0.2), or of the loss\n"
                "of eval (loss:0.01), by which it may be worse than in f32",
                "of each program, with seeds of their own; their mean counts "
                "(default 1)");
  verb.AddSwitch("--within-lists", &flags->within_lists,
                 "ops that are black by their list stay f32 unasked");
  verb.SetRun([flags, outcome] { outcome->status = Search(*flags); });
}

}  // namespace tools
}  // namespace halftone
