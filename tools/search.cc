// halftone search: which ops must stay f32, by training.
#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "graph/base/output_file.h"
#include "graph/strategy/fields.h"
#include "tools/common/command_line.h"
#include "tools/common/launch_command.h"
#include "tools/common/model_flags.h"
#include "tools/common/run_flags.h"
#include "tools/search/precision_search.h"
#include "tools/search/search_report.h"
#include "tools/search/trials.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct SearchFlags {
  ModelFlags model;
  RankFlags ranks;
  runtime::TrainConfig config;  // of the runs
  std::string tolerance, out, strategy_out;
  int runs = 1;
  bool within_lists = false, json = false;
};

// The flags that were given for the runs, as they are typed.
std::vector<std::string> WordsOf(const SearchFlags& flags) {
  const runtime::TrainConfig& config = flags.config;
  std::vector<std::string> words = {"--data", config.data};
  const auto add = [&words](const char* flag, const std::string& value) {
    words.insert(words.end(), {flag, value});
  };
  const runtime::TrainConfig unset;
  if (!config.eval_data.empty()) add("--eval-data", config.eval_data);
  for (const std::string& map : config.feed_map) add("--feed", map);
  if (!config.init.empty()) add("--init", config.init);
  if (config.max_unpack != unset.max_unpack) {
    add("--max-unpack", absl::StrCat(config.max_unpack));
  }
  if (config.readers != unset.readers) {
    add("--workers", absl::StrCat(config.readers));
  }
  if (!config.deterministic) words.push_back("--no-deterministic");
  if (!config.use_graphs) words.push_back("--no-graph");
  if (flags.ranks.ranks > 0) add("--ranks", absl::StrCat(flags.ranks.ranks));
  if (!flags.ranks.gpus.empty()) add("--gpus", flags.ranks.gpus);
  if (flags.ranks.threads > 0) {
    add("--threads", absl::StrCat(flags.ranks.threads));
  }
  return words;
}

absl::Status Search(SearchFlags& flags) {
  if (flags.model.target.empty()) {
    HT_ASSIGN_OR_RETURN(flags.model.target, TargetOfRun(flags.ranks));
  }
  HT_ASSIGN_OR_RETURN(const CompiledModel model,
                      LoadOrCompile(flags.model, /*may_recompile=*/true));
  HT_ASSIGN_OR_RETURN(const Tolerance tolerance,
                      ParseTolerance(flags.tolerance, model));
  Trials::Settings settings;
  settings.directory =
      flags.out.empty() ? model.program->name + ".search" : flags.out;
  settings.metric = tolerance.metric;
  settings.runs = flags.runs;
  settings.words = WordsOf(flags);
  HT_ASSIGN_OR_RETURN(settings.self, FindSelf());
  settings.say = [](const std::string& line) {
    ShowReport(line + "\n", stderr);
  };
  const std::map<std::string, std::string> question = {
      {"program", model.fingerprint},
      {"strategy", StrategyText(model.strategy)},
      {"metric", tolerance.metric.name},
      {"flags", absl::StrJoin(settings.words, " ")}};
  HT_ASSIGN_OR_RETURN(Trials trials,
                      Trials::Open(std::move(settings), question));
  HT_ASSIGN_OR_RETURN(
      const SearchAnswer answer,
      SearchPrecision(model, tolerance, flags.within_lists, &trials));
  const std::string text = SearchText(answer, tolerance, flags.runs, trials);
  if (!flags.strategy_out.empty()) {
    HT_RETURN_IF_ERROR(WriteOutput(flags.strategy_out, text));
  }
  Show(flags.json ? SearchJson(answer, tolerance, flags.runs, trials) : text,
       stdout);
  return absl::OkStatus();
}

}  // namespace

void AddSearch(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<SearchFlags>();
  Verb verb = app.AddVerb(
      "search", "which ops must stay f32, by training",
      "examples:\n"
      "  halftone search models/mnist_convnet.pbtxt \\\n"
      "      --strategy models/mnist_o1.pbtxt --data idx:models/digits \\\n"
      "      --tolerance top1:0.2 --runs 3 --out searches/mnist\n\n"
      "Trains the model in f32, then with as many ops low as can be, and "
      "finds\n"
      "the fewest ops that have to be f32 for the metric to stay within the\n"
      "tolerance of f32's: delta debugging over measured runs. Prints them as\n"
      "a strategy. The same command goes on where it was stopped.");
  AddModelFlags(verb, &flags->model);
  AddDataFlags(verb, &flags->config);
  verb.AddOption("--init", &flags->config.init,
                 "parameters that each run begins with, as of halftone run");
  verb.AddOption("--tolerance", &flags->tolerance,
                 "METRIC:NUMBER: percentage points (top1:0.2), or of the loss\n"
                 "of eval (loss:0.01), by which it may be worse than in f32")
      .Required();
  verb.AddOption("--runs", &flags->runs,
                 "of each program, with seeds of their own; their mean counts "
                 "(default 1)")
      .InRange(1, 1000);
  verb.AddSwitch("--within-lists", &flags->within_lists,
                 "ops that are black by their list stay f32 unasked");
  verb.AddOption("--out", &flags->out,
                 "directory of the runs and their results; default: the "
                 "model's name and .search");
  verb.AddOption("-o", &flags->strategy_out, "a file for the strategy, too");
  verb.AddSwitch("--json", &flags->json, "one JSON object");
  AddRankFlags(verb, &flags->ranks);
  verb.SetRun([flags, outcome] { outcome->status = Search(*flags); });
}

}  // namespace tools
}  // namespace halftone
