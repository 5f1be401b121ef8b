#include "tools/compare/compared_models.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/strategy/fields.h"

namespace halftone {
namespace tools {
namespace {

bool IsLevel(const std::string& word) {
  return word.size() == 2 && word[0] == 'O' && word[1] >= '0' && word[1] <= '9';
}

absl::StatusOr<CompiledModel> LoadReference(const ComparedModelsFlags& flags,
                                            const CompiledModel& compared) {
  if (IsLevel(flags.against)) {
    return RecompileWith(compared, {{"amp.level", flags.against, flags.flag}});
  }
  ModelFlags reference;
  reference.path = flags.against;
  reference.target = compared.target;
  const absl::StatusOr<FileKind> kind = KindOf(reference);
  if (kind.ok()) {
    reference.runs_here = true;
    if (*kind != FileKind::kCompiledModel) {
      reference.strategy = flags.compared.strategy;
      reference.overrides = flags.compared.overrides;
    }
    return LoadOrCompile(reference, /*may_recompile=*/true);
  }
  HT_RETURN_IF_ERROR(passes::ReadStrategy(flags.against).status());
  ModelFlags again = flags.compared;
  again.strategy = flags.against;
  again.overrides.clear();
  return LoadOrCompile(again, /*may_recompile=*/true);
}

}  // namespace

void AddComparedModelsFlags(Verb verb, ComparedModelsFlags* flags) {
  AddModelFlags(verb, &flags->compared)
      .Help(
          "what is compared: model, compiled model, run directory,\n"
          "checkpoint or .npz file");
  const Flag other = verb.AddOption("reference", &flags->against,
                                    "what it is compared with: another one");
  verb.AddOption("--against", &flags->against,
                 "the reference: a level (O0) or a strategy file, with which "
                 "the\nmodel is compiled again, or a path as above")
      .Excludes(other);
  verb.AddOption(
      "--batch",
      [flags](const std::string& samples) {
        flags->compared.overrides.push_back(
            {"train.batch_size", samples, "--batch"});
        return absl::OkStatus();
      },
      "samples in a batch; default: the strategy's");
}

absl::StatusOr<ComparedModels> LoadComparedModels(
    const ComparedModelsFlags& flags) {
  if (flags.against.empty()) {
    return UsageError("compare ", flags.compared.path,
                      ": with what? --against O0, or another path");
  }
  ComparedModels models;
  HT_ASSIGN_OR_RETURN(models.compared,
                      LoadOrCompile(flags.compared, /*may_recompile=*/true));
  HT_ASSIGN_OR_RETURN(models.reference, LoadReference(flags, models.compared));
  return models;
}

std::string ShortName(const CompiledModel& model) {
  const proto::Amp& amp = model.strategy.amp();
  return absl::StrCat(model.program->name, " ", amp.level(),
                      amp.level() == "O0" ? "" : " ",
                      amp.level() == "O0" ? "" : amp.dtype());
}

}  // namespace tools
}  // namespace halftone
