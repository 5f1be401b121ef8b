#include "tools/search/trial_flags.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "graph/base/output_file.h"
#include "graph/schema/op_library.h"
#include "graph/strategy/fields.h"
#include "tools/common/launch_command.h"

namespace halftone {
namespace tools {
namespace {

// The flags that were given for the runs, as they are typed.
std::vector<std::string> WordsOf(const TrialFlags& flags) {
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
  for (const std::string& path : flags.model.op_libraries) {
    add("--op-library", path);
  }
  return words;
}

// By their content: a kernel that was mended is another question.
std::string LibrariesOfModel(const CompiledModel& model) {
  std::vector<std::string> hashes;
  for (const OpLibrary* library : LibrariesOf(*model.program)) {
    hashes.push_back(absl::StrCat(library->name, " ", library->hash));
  }
  return absl::StrJoin(hashes, ", ");
}

}  // namespace

void AddTrialFlags(Verb verb, TrialFlags* flags, const std::string& tolerance,
                   const std::string& runs) {
  AddModelFlags(verb, &flags->model);
  AddDataFlags(verb, &flags->config);
  verb.AddOption("--init", &flags->config.init,
                 "parameters that each run begins with, as of halftone run");
  verb.AddOption("--tolerance", &flags->tolerance, tolerance).Required();
  verb.AddOption("--runs", &flags->runs, runs).InRange(1, 1000);
  verb.AddOption("--out", &flags->out,
                 absl::StrCat("directory of the runs and their results; "
                              "default: the model's name and .",
                              verb.name()));
  verb.AddOption("-o", &flags->strategy_out, "a file for the strategy, too");
  verb.AddSwitch("--json", &flags->json, "one JSON object");
  AddRankFlags(verb, &flags->ranks);
}

absl::Status FillTarget(TrialFlags* flags) {
  if (!flags->model.target.empty()) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(flags->model.target, TargetOfRun(flags->ranks));
  return absl::OkStatus();
}

absl::StatusOr<KeptResults> OpenResults(
    const std::string& verb, const TrialFlags& flags,
    const CompiledModel& model, const Metric& metric,
    std::map<std::string, std::string> question) {
  question["program"] = model.fingerprint;
  question["strategy"] = StrategyText(model.strategy);
  question["metric"] = metric.name;
  question["flags"] = absl::StrJoin(WordsOf(flags), " ");
  question["op libraries"] = LibrariesOfModel(model);
  return KeptResults::Open(flags.out.empty()
                               ? absl::StrCat(model.program->name, ".", verb)
                               : flags.out,
                           verb, question);
}

absl::StatusOr<TrainingRuns> MakeTrainingRuns(const std::string& verb,
                                              const TrialFlags& flags,
                                              const Metric& metric,
                                              const KeptResults& kept) {
  TrainingRuns::Settings settings;
  settings.verb = verb;
  settings.metric = metric;
  settings.words = WordsOf(flags);
  HT_ASSIGN_OR_RETURN(settings.self, FindSelf());
  return TrainingRuns(std::move(settings), &kept.directory());
}

void SayTrial(const std::string& line) { ShowReport(line + "\n", stderr); }

absl::Status ShowFound(const TrialFlags& flags, const std::string& text,
                       const std::string& json) {
  if (!flags.strategy_out.empty()) {
    HT_RETURN_IF_ERROR(WriteOutput(flags.strategy_out, text));
  }
  Show(flags.json ? json : text, stdout);
  return absl::OkStatus();
}

}  // namespace tools
}  // namespace halftone
