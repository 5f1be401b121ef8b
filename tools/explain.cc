// halftone explain: one op, value, cast or code.
#include <filesystem>
#include <memory>

#include "graph/base/error.h"
#include "graph/base/shell_word.h"
#include "graph/strategy/fields.h"
#include "passes/options/options.h"
#include "tools/common/command_line.h"
#include "tools/common/model_flags.h"
#include "tools/common/show_answer.h"
#include "tools/report/explain_report.h"
#include "tools/report/strategy_report.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

constexpr char kStrategy[] = "strategy";

struct ExplainFlags {
  ModelFlags model;
  std::string name;
  bool list = false, json = false;
};

// `explain strategy`: as it is declared, or, with a file or flags, as they make
// it.
absl::StatusOr<std::string> ExplainOwnStrategy(const ExplainFlags& flags) {
  const ModelFlags& given = flags.model;
  if (given.strategy.empty() && given.overrides.empty()) {
    return ExplainStrategy(flags.name, flags.json, /*in_force=*/nullptr);
  }
  passes::StrategyFile file;
  if (!given.strategy.empty()) {
    HT_ASSIGN_OR_RETURN(file, passes::ReadStrategy(given.strategy));
  }
  HT_ASSIGN_OR_RETURN(const passes::Options options,
                      passes::ResolveOptions(file, given.overrides));
  const StrategyInForce in_force = {options.strategy, options.origins};
  return ExplainStrategy(flags.name, flags.json, &in_force);
}

// An op, value or cast of the model; a field of the strategy that it was
// compiled with, or `strategy`, all of them, where nothing of it has that name.
absl::StatusOr<std::string> ExplainOfModel(const ExplainFlags& flags) {
  HT_ASSIGN_OR_RETURN(const CompiledModel model,
                      LoadOrCompile(flags.model, /*may_recompile=*/true));
  absl::StatusOr<std::string> text = ExplainName(model, flags.name, flags.json);
  const bool all = flags.name == kStrategy;
  if (text.ok() || !(all || FindStrategyField(flags.name) != nullptr)) {
    return text;
  }
  const StrategyInForce in_force = InForceOf(model);
  return ExplainStrategy(all ? "" : flags.name, flags.json, &in_force);
}

absl::Status Explain(const ExplainFlags& flags) {
  std::string text;
  if (flags.list) {
    if (!flags.model.path.empty()) {
      return UsageError("explain ", flags.model.path,
                        ": --list is of what needs no model; names of a model "
                        "are listed by halftone inspect MODEL --all");
    }
    text = ListSubjects(flags.json);
  } else if (flags.model.path.empty()) {
    text = ExplainCodes(flags.json);
  } else if (flags.model.path == kStrategy) {
    HT_ASSIGN_OR_RETURN(text, ExplainOwnStrategy(flags));
  } else if (flags.name.empty()) {
    if (std::filesystem::exists(flags.model.path)) {
      return UsageError("explain ", flags.model.path,
                        ": name an op, value or cast of it, too (all: "
                        "halftone inspect ",
                        ShellWord(flags.model.path), ")");
    }
    HT_ASSIGN_OR_RETURN(text, ExplainCode(flags.model.path, flags.json));
  } else {
    HT_ASSIGN_OR_RETURN(text, ExplainOfModel(flags));
  }
  ShowAnswer(text, flags.json);
  return absl::OkStatus();
}

}  // namespace

void AddExplain(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<ExplainFlags>();
  Verb verb = app.AddVerb(
      "explain", "why one op, value or cast is as it is",
      "examples:\n"
      "  halftone explain mnist.htc logits\n"
      "  halftone explain runs/mnist conv1.w --json\n"
      "  halftone explain D8\n"
      "  halftone explain GRAY_ALL_LOW\n"
      "  halftone explain E7\n"
      "  halftone explain --list\n"
      "  halftone explain strategy amp.loss_scaling\n"
      "  halftone explain mnist.htc amp.loss_scaling\n"
      "  halftone explain\n\n"
      "Of a model: the whole chain, the rule, the line, and what would change\n"
      "it. Without a model: what a note, reason or exit code means, or all of\n"
      "them. Of `strategy`: its fields, or one of them: default, range, flag;\n"
      "of a model, or with --strategy and --set, the values in force and "
      "where\n"
      "each came from. (A model of that name is ./strategy.)");
  AddModelFlags(verb, &flags->model)
      .Help("model, a code, or `strategy`; none: all codes")
      .Required(false);
  verb.AddOption("name", &flags->name,
                 "op, value, cast, feed or cell; a field of the strategy");
  verb.AddSwitch("--list", &flags->list,
                 "what there is a page of without a model, by title");
  verb.AddSwitch("--json", &flags->json, "one JSON object");
  verb.SetRun([flags, outcome] { outcome->status = Explain(*flags); });
}

}  // namespace tools
}  // namespace halftone
