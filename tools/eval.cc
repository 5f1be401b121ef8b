// halftone eval: a checkpoint on the test split.
#include <memory>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/json/json_of_number.h"
#include "nlohmann/json.hpp"
#include "runtime/log/words.h"
#include "runtime/report/report_text.h"
#include "runtime/train/run_facts.h"
#include "tools/common/command_line.h"
#include "tools/common/json_text.h"
#include "tools/common/model_flags.h"
#include "tools/common/run_flags.h"
#include "tools/common/show_answer.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct EvalFlags {
  ModelFlags model;
  RankFlags ranks;
  runtime::TrainConfig config;
  bool best = false, json = false;
};

std::string EvalJson(const runtime::EvalReport& report) {
  nlohmann::ordered_json json = {
      {"schema", 1},
      {"metrics", nlohmann::ordered_json::object()},
      {"loss", JsonOfNumber(report.loss)},
      {"samples", static_cast<int64_t>(report.samples)}};
  for (const auto& [name, metric] : report.metrics) {
    json["metrics"][name] = {
        {"value", metric.total > 0 ? metric.correct / metric.total : 0},
        {"correct", static_cast<int64_t>(metric.correct)},
        {"total", static_cast<int64_t>(metric.total)}};
  }
  for (const auto& [name, loss] : report.parts) {
    json["losses"][name] = {{"loss", JsonOfNumber(loss)}};
  }
  return JsonText(json, -1);
}

absl::Status Eval(EvalFlags& flags) {
  HT_RETURN_IF_ERROR(
      FindParameters("eval", flags.model.path, flags.best, &flags.config));
  if (flags.config.init.empty() && flags.config.out.empty()) {
    return UsageError("eval ", flags.model.path,
                      ": neither a run directory nor a checkpoint; say with "
                      "--init where its parameters are");
  }
  flags.model.runs_here = true;
  HT_ASSIGN_OR_RETURN(const FileKind kind, KindOf(flags.model));
  if (kind != FileKind::kCompiledModel && flags.model.target.empty()) {
    HT_ASSIGN_OR_RETURN(flags.model.target, TargetOfRun(flags.ranks));
  }
  HT_ASSIGN_OR_RETURN(const CompiledModel model,
                      LoadOrCompile(flags.model, /*may_recompile=*/true));
  HT_RETURN_IF_ERROR(FillConfig(model, &flags.config));
  HT_ASSIGN_OR_RETURN(const LocalRanks ranks,
                      MakeRanks(flags.ranks, model.target));
  HT_ASSIGN_OR_RETURN(const runtime::EvalReport report,
                      runtime::Evaluate(*model.program, *ranks.kernels,
                                        flags.config, ranks.resources));
  if (ranks.communicators[0]->rank() != 0) return absl::OkStatus();
  const runtime::EvalEvent eval = runtime::EvalOf(report);
  const std::string metrics =
      report.metrics.empty()
          ? ""
          : runtime::MetricsText(runtime::MetricNames(*model.program), eval) +
                "  ";
  const std::string text =
      flags.json
          ? EvalJson(report)
          : absl::StrCat(metrics, "loss ", runtime::ThreeDigits(report.loss),
                         runtime::PartsText(eval.parts),
                         "  in the compiled precision (",
                         flags.config.strategy.amp().level(), ")\n");
  ShowAnswer(text, flags.json);
  return absl::OkStatus();
}

}  // namespace

void AddEval(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<EvalFlags>();
  Verb verb = app.AddVerb(
      "eval", "a checkpoint on the test split",
      "examples:\n"
      "  halftone eval runs/mnist --data idx:models/digits\n"
      "  halftone eval runs/mnist --best --data idx:models/digits\n"
      "  halftone eval runs/mnist/ckpt/step-46 --data idx:models/digits\n"
      "  halftone eval runs/mnist --data idx:models/digits --level O0\n"
      "  halftone eval mnist.htc --init x.safetensors --data idx:models/digits"
      "\n\n"
      "Takes a run directory (its newest sound checkpoint), a checkpoint, or\n"
      "a model with --init, and prints its metrics.");
  AddModelFlags(verb, &flags->model);
  AddDataFlags(verb, &flags->config);
  AddRankFlags(verb, &flags->ranks);
  AddParameterFlags(verb, &flags->best, &flags->config);
  verb.AddSwitch("--json", &flags->json, "one JSON object");
  verb.SetRun([flags, outcome] { outcome->status = Eval(*flags); });
}

}  // namespace tools
}  // namespace halftone
