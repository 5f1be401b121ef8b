// halftone predict: the outputs of a model for each sample.
#include "runtime/train/predict.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "graph/base/output_file.h"
#include "graph/ir/well_known.h"
#include "tools/common/command_line.h"
#include "tools/common/model_flags.h"
#include "tools/common/program_input.h"
#include "tools/common/run_flags.h"
#include "tools/report/predict_report.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct PredictFlags {
  ModelFlags model;
  RankFlags ranks;
  runtime::TrainConfig config;
  PredictQuestion question;
  bool best = false, json = false;
};

// What is to be made of the model: --fetch, else its outputs.
absl::Status FindOutputs(const Program& source, PredictFlags& flags) {
  std::vector<std::string>& outputs = flags.model.compile.outputs;
  for (const std::string& name : flags.config.fetches) {
    const auto end = outputs.end();
    if (std::find(outputs.begin(), end, name) == end) outputs.push_back(name);
  }
  if (outputs.empty()) outputs = source.outputs;
  if (!outputs.empty()) return absl::OkStatus();
  return UsageError("predict ", flags.model.path, ": the model names no ",
                    "output; name values with --fetch (halftone inspect ",
                    "lists them)");
}

// A map of a feed that the outputs do not need says nothing.
void DropUnusedMaps(const Program& source, const Program& program,
                    std::vector<std::string>* feed_map) {
  const auto feeds = [](const Program& of, const char* entry,
                        const std::string& map) {
    const Entry* const found = of.FindEntry(entry);
    if (found == nullptr) return false;
    for (const ValueId feed : found->block().Feeds()) {
      const std::string name(found->block().name(feed));
      if (map.rfind(name + "=", 0) == 0 ||
          map.substr(map.find('=') + 1) == name) {
        return true;
      }
    }
    return false;
  };
  const auto unused = [&](const std::string& map) {
    return feeds(source, kTrainEntry, map) && !feeds(program, kEvalEntry, map);
  };
  feed_map->erase(std::remove_if(feed_map->begin(), feed_map->end(), unused),
                  feed_map->end());
}

absl::Status Predict(PredictFlags& flags) {
  runtime::TrainConfig& config = flags.config;
  const std::string& out = flags.question.out;
  HT_RETURN_IF_ERROR(
      FindParameters("predict", flags.model.path, flags.best, &config));
  HT_ASSIGN_OR_RETURN(const ProgramInput source, ReadProgram(flags.model));
  HT_RETURN_IF_ERROR(FindOutputs(*source.program, flags));
  if (!out.empty()) {
    HT_RETURN_IF_ERROR(CheckPredictFile(out, flags.model.compile.outputs));
  }
  flags.question.kinds = ScoreKindsOf(*source.program);
  flags.model.runs_here = true;
  HT_ASSIGN_OR_RETURN(const FileKind kind, KindOf(flags.model));
  if (kind != FileKind::kCompiledModel && flags.model.target.empty()) {
    HT_ASSIGN_OR_RETURN(flags.model.target, TargetOfRun(flags.ranks));
  }
  HT_ASSIGN_OR_RETURN(const CompiledModel model,
                      LoadOrCompile(flags.model, /*may_recompile=*/true));
  DropUnusedMaps(*source.program, *model.program, &config.feed_map);
  HT_RETURN_IF_ERROR(FillConfig(model, &config));
  HT_ASSIGN_OR_RETURN(const LocalRanks ranks,
                      MakeRanks(flags.ranks, model.target));
  const bool leads = ranks.communicators[0]->rank() == 0;
  if (leads && config.init.empty() && config.out.empty()) {
    ShowReport("note     parameters are as initialised; --init takes others\n",
               stderr);
  }
  HT_ASSIGN_OR_RETURN(runtime::Predictions predictions,
                      runtime::Predict(*model.program, *ranks.kernels, config,
                                       ranks.resources));
  if (!leads) return absl::OkStatus();
  const std::string text = flags.json
                               ? PredictJson(predictions, flags.question)
                               : PredictText(predictions, flags.question);
  if (!out.empty()) {
    HT_ASSIGN_OR_RETURN(const std::string content,
                        PredictFile(std::move(predictions), out));
    HT_RETURN_IF_ERROR(WriteOutput(out, content));
  }
  Show(text, stdout);
  return absl::OkStatus();
}

}  // namespace

void AddPredict(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<PredictFlags>();
  Verb verb = app.AddVerb(
      "predict", "the outputs of a model for each sample",
      "examples:\n"
      "  halftone predict runs/mnist --data idx:models/digits\n"
      "  halftone predict runs/mnist --data npz:x.npz -o logits.npz\n"
      "  halftone predict runs/mnist --best --data npz:x.npz --top 1\n"
      "  halftone predict model.pbtxt --init w.safetensors --data npz:x.npz "
      "\\\n"
      "      --fetch features -o features.jsonl\n"
      "  halftone predict mnist.htc --data npz:x.npz --level O0 --ranks 2\n\n"
      "Runs a model without its loss over all samples, once each and in the\n"
      "data's order (of a source with splits the test split), and prints the\n"
      "best classes or writes the outputs: f32 where they are computed in 16\n"
      "bits. Feeds that they do not need, such as labels, are not read. What\n"
      "no -1 of a feed cuts into samples runs once.");
  AddModelFlags(verb, &flags->model);
  AddDataFlags(verb, &flags->config);
  AddRankFlags(verb, &flags->ranks);
  AddParameterFlags(verb, &flags->best, &flags->config);
  verb.AddOption("--fetch", &flags->config.fetches,
                 "VALUE ...: any of the model, instead of its outputs");
  verb.AddOption("--top", &flags->question.top, "classes shown (default 5)")
      .InRange(1, 1000000);
  verb.AddOption("-o,--out", &flags->question.out,
                 "FILE.npz (an array for each output) or FILE.jsonl (a line "
                 "for each sample)")
      .Writes();
  verb.AddSwitch("--json", &flags->json, "one JSON object");
  verb.SetRun([flags, outcome] { outcome->status = Predict(*flags); });
}

}  // namespace tools
}  // namespace halftone
