// halftone ops: the ops that models may use.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "passes/options/named_op_lists.h"
#include "tools/common/command_line.h"
#include "tools/common/model_flags.h"
#include "tools/common/show_answer.h"
#include "tools/report/ops_report.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct OpsFlags {
  std::string name, target;
  std::vector<std::string> op_libraries;
  bool lists = false, of_models = false, json = false;
};

absl::Status PrintOps(const OpsFlags& flags) {
  HT_RETURN_IF_ERROR(LoadOpLibraries(flags.op_libraries));
  if (flags.lists) {
    ShowAnswer(OpListsText(), /*for_programs=*/false);
    return absl::OkStatus();
  }
  const std::string target =
      flags.target.empty() ? ThisMachine() : flags.target;
  HT_ASSIGN_OR_RETURN(const passes::KernelSet kernels, KernelSetFor(target));
  const WhichOps which = flags.of_models ? WhichOps::kOfModels : WhichOps::kAll;
  std::string text;
  if (flags.json) {
    HT_ASSIGN_OR_RETURN(text, OpsJson(flags.name, kernels, which));
  } else if (flags.name.empty()) {
    text = OpsText(kernels, which);
  } else {
    HT_ASSIGN_OR_RETURN(text, OpText(flags.name, kernels));
  }
  ShowAnswer(text, flags.json);
  return absl::OkStatus();
}

}  // namespace

void AddOps(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<OpsFlags>();
  Verb verb = app.AddVerb(
      "ops", "the ops that models may use",
      "examples:\n"
      "  halftone ops\n"
      "  halftone ops --model\n"
      "  halftone ops conv2d\n"
      "  halftone ops --lists\n\n"
      "Lists all ops with their AMP class and kernels, or one op with its\n"
      "slots and attributes.");
  Flag name = verb.AddOption("name", &flags->name, "an op or alias; none: all");
  Flag target =
      verb.AddOption("--target", &flags->target, "default: this machine");
  Flag lists =
      verb.AddSwitch("--lists", &flags->lists,
                     absl::StrCat("each op's class under the lists of ",
                                  absl::StrJoin(passes::OpListNames(), ", ")));
  Flag of_models = verb.AddSwitch("--model", &flags->of_models,
                                  "without those that passes alone make");
  Flag json = verb.AddSwitch("--json", &flags->json, "one JSON object");
  AddOpLibraryFlag(verb, &flags->op_libraries);
  lists.Excludes(name).Excludes(target).Excludes(json).Excludes(of_models);
  of_models.Excludes(name);
  verb.SetRun([flags, outcome] { outcome->status = PrintOps(*flags); });
}

}  // namespace tools
}  // namespace halftone
