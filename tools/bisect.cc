// halftone bisect: which ops make a program miss a tolerance.
#include "tools/search/bisect.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/strategy/fields.h"
#include "tools/common/command_line.h"
#include "tools/compare/compared_models.h"
#include "tools/search/bisect_report.h"
#include "tools/search/trial_flags.h"
#include "tools/search/value_trials.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

constexpr char kBisect[] = "bisect";

struct BisectFlags : TrialFlags {
  std::string good = "O0", values;
  int64_t batches = 1;
};

bool IsOfValues(const Tolerance& tolerance) {
  return tolerance.metric.kind == Metric::Kind::kError;
}

// What results depend on beside the bad program.
absl::StatusOr<KeptResults> OpenResultsOf(const BisectFlags& flags,
                                          const ComparedModels& models,
                                          const Tolerance& tolerance) {
  return OpenResults(
      kBisect, flags, models.compared, tolerance.metric,
      {{"good program", models.reference.fingerprint},
       {"good strategy", StrategyText(models.reference.strategy)},
       {"values", flags.values},
       {"batches", absl::StrCat(flags.batches)}});
}

absl::StatusOr<LocalRanks> RanksFor(const BisectFlags& flags,
                                    const CompiledModel& model) {
  HT_ASSIGN_OR_RETURN(LocalRanks ranks, MakeRanks(flags.ranks, model.target));
  if (ranks.communicators[0]->world_size() != 1) {
    return UsageError("bisect: values are compared on one rank; leave --ranks ",
                      "out");
  }
  return ranks;
}

absl::Status BisectBy(const BisectFlags& flags, const ComparedModels& models,
                      const Tolerance& tolerance, Trials* trials) {
  HT_ASSIGN_OR_RETURN(
      const BisectAnswer answer,
      Bisect(models.reference, models.compared, tolerance, trials));
  const BisectFacts facts = {
      flags.model.path,
      models.compared.source.file,
      absl::StrCat(ShortName(models.reference), " (", flags.good, ")"),
      ShortName(models.compared),
      flags.strategy_out,
      tolerance};
  return ShowFound(flags, BisectText(answer, facts, *trials),
                   BisectJson(answer, facts, *trials));
}

absl::Status Run(BisectFlags& flags) {
  HT_RETURN_IF_ERROR(FillTarget(&flags));
  HT_ASSIGN_OR_RETURN(const ComparedModels models,
                      LoadComparedModels({flags.model, flags.good, "--good"}));
  HT_ASSIGN_OR_RETURN(const Tolerance tolerance,
                      ParseTolerance(flags.tolerance, *models.compared.program,
                                     /*values=*/true));
  const Metric& metric = tolerance.metric;
  if (!IsOfValues(tolerance) && (!flags.values.empty() || flags.batches > 1)) {
    return UsageError("bisect: --values and --batches go with an error of ",
                      "values, as --tolerance error:0.01, not with ",
                      metric.name);
  }
  HT_ASSIGN_OR_RETURN(KeptResults kept,
                      OpenResultsOf(flags, models, tolerance));
  if (!IsOfValues(tolerance)) {
    HT_ASSIGN_OR_RETURN(const TrainingRuns runs,
                        MakeTrainingRuns(kBisect, flags, metric, kept));
    const auto run = [&runs](const CompiledModel& model, int64_t seed) {
      return runs.Run(model, seed);
    };
    Trials trials({metric, flags.runs, run, SayTrial}, &kept);
    return BisectBy(flags, models, tolerance, &trials);
  }
  HT_ASSIGN_OR_RETURN(const LocalRanks ranks, RanksFor(flags, models.compared));
  const ValueTrials values({flags.config,
                            {metric.name, tolerance.most},
                            flags.values,
                            flags.batches},
                           &models.reference, &ranks);
  const auto run = [&values](const CompiledModel& model, int64_t seed) {
    return values.Run(model, seed);
  };
  Trials trials({metric, /*runs=*/1, run, SayTrial}, &kept);
  return BisectBy(flags, models, tolerance, &trials);
}

}  // namespace

void AddBisect(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<BisectFlags>();
  Verb verb = app.AddVerb(
      kBisect, "which ops make a metric or values miss a tolerance",
      "examples:\n"
      "  halftone bisect models/mnist_convnet.pbtxt \\\n"
      "      --strategy models/mnist_o1.pbtxt --data idx:models/digits \\\n"
      "      --tolerance top1:0.2 --runs 3 -o cured.pbtxt\n"
      "  halftone bisect net.htc --good good.htc --data synthetic \\\n"
      "      --tolerance error:0.01 --batches 4\n\n"
      "The model as it is is the bad program, --good the good one. Delta\n"
      "debugging finds the smallest sets of ops that, in the precision that\n"
      "they have in the bad program, miss the tolerance, and a strategy with\n"
      "which it holds. A metric is trained for; runs near the bound are made\n"
      "again with other seeds. An error of values takes a few batches. The\n"
      "same command goes on where it was stopped. Exit 3: the bad program\n"
      "holds the tolerance, or no op's precision is to blame.");
  AddTrialFlags(verb, flags.get(),
                "METRIC:NUMBER: percentage points (top1:0.2) or of the loss\n"
                "(loss:0.01) by which it may be worse than in the good "
                "program;\n"
                "or a measure of values, as of halftone compare (error:0.01)",
                "of each program at most, with seeds of their own; of one near "
                "the\nbound the mean counts (default 1)");
  verb.AddOption("--good", &flags->good,
                 "the good program: a level, a strategy file, or a model as "
                 "above\n(default O0)");
  verb.AddOption("--values", &flags->values,
                 "glob over names of the values that are compared; default: "
                 "all");
  verb.AddOption("--batches", &flags->batches,
                 "of which values are compared (default 1)")
      .InRange(1, 1000000);
  verb.SetRun([flags, outcome] { outcome->status = Run(*flags); });
}

}  // namespace tools
}  // namespace halftone
