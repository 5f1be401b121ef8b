#include "tools/compare/compare_facts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "runtime/compare/compare_tensors.h"
#include "tools/common/model_path.h"
#include "tools/compare/remedies.h"

namespace halftone {
namespace tools {

int64_t CompareFacts::exceeding() const {
  if (!has_tolerance) return 0;
  return std::count_if(order.begin(), order.end(), [this](int position) {
    return Measure(bound, ErrorsThatCount(comparison.values[position])) >
           bound.most;
  });
}

absl::Status CompareModels(ComparedModelsFlags flags, const RankFlags& ranks,
                           bool best, runtime::TrainConfig config,
                           const runtime::CompareOptions& options,
                           CompareFacts* facts) {
  const std::string& path = flags.compared.path;
  HT_RETURN_IF_ERROR(FindParameters("compare", path, best, &config));
  flags.compared.runs_here = true;
  HT_ASSIGN_OR_RETURN(const FileKind kind, KindOf(flags.compared));
  if (kind != FileKind::kCompiledModel && flags.compared.target.empty()) {
    HT_ASSIGN_OR_RETURN(flags.compared.target, TargetOfRun(ranks));
  }
  HT_ASSIGN_OR_RETURN(const ComparedModels models, LoadComparedModels(flags));
  HT_RETURN_IF_ERROR(FillConfig(models.compared, &config));
  HT_ASSIGN_OR_RETURN(const LocalRanks local,
                      MakeRanks(ranks, models.compared.target));
  if (local.communicators[0]->world_size() != 1) {
    return UsageError("compare runs on one rank: give --gpus one id");
  }
  const Program& compared = *models.compared.program;
  HT_ASSIGN_OR_RETURN(facts->comparison,
                      runtime::ComparePrograms(*models.reference.program,
                                               compared, *local.kernels, config,
                                               local.resources[0], options));
  facts->compared = ShortName(models.compared);
  facts->reference = ShortName(models.reference);
  facts->compared_fingerprint = models.compared.fingerprint;
  facts->reference_fingerprint = models.reference.fingerprint;
  facts->order = WorstFirst(facts->comparison, facts->bound);
  facts->remedies.resize(facts->comparison.values.size());
  const Remedies remedies(facts->comparison, compared, config);
  for (size_t i = 0; i < facts->order.size() && i < kWorstValues; ++i) {
    const int position = facts->order[i];
    facts->remedies[position] =
        remedies.For(facts->comparison.values[position]);
  }
  return absl::OkStatus();
}

bool IsArrays(const std::string& path) { return absl::EndsWith(path, ".npz"); }

bool AreRuns(const std::string& compared, const std::string& reference) {
  const auto is_run = [](const std::string& path) {
    const auto found = FindModel(path);
    return found.ok() && !found->run.empty();
  };
  return is_run(compared) && is_run(reference);
}

absl::Status CompareFiles(const std::string& compared,
                          const std::string& reference, CompareFacts* facts) {
  runtime::RunTensors both;
  std::vector<std::string> said;
  if (IsArrays(compared)) {
    HT_ASSIGN_OR_RETURN(both.reference, runtime::ReadNpz(reference));
    HT_ASSIGN_OR_RETURN(both.compared, runtime::ReadNpz(compared));
  } else {
    HT_ASSIGN_OR_RETURN(both, runtime::ReadRuns(reference, compared, &said));
  }
  auto comparison = runtime::CompareTensors(both.reference, both.compared);
  if (!comparison.ok()) {
    return Annotate(comparison.status(),
                    absl::StrCat("compare ", compared, " ", reference));
  }
  facts->comparison = *std::move(comparison);
  facts->comparison.said = std::move(said);
  facts->compared = compared;
  facts->reference = reference;
  facts->order = WorstFirst(facts->comparison, facts->bound);
  facts->remedies.resize(facts->comparison.values.size());
  return absl::OkStatus();
}

}  // namespace tools
}  // namespace halftone
