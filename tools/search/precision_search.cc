#include "tools/search/precision_search.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "passes/kernel_set.h"
#include "passes/options/options.h"
#include "tools/common/model_flags.h"
#include "tools/search/smallest_set.h"

namespace halftone {
namespace tools {
namespace {

using passes::Override;

// A candidate: an op that is low unless the search keeps it f32.
struct Candidate {
  SearchedOp op;
  bool black = false;  // by its list
};

// Black by class, not by the user's word or for want of a kernel.
bool IsBlackByList(const proto::OpRow& row) {
  return IsForward(row) &&
         (row.reason() == "BLACK_LIST" || row.reason() == "UNLISTED");
}

class Search {
 public:
  Search(const CompiledModel& model, const Tolerance& tolerance,
         bool within_lists, Trials* trials)
      : model_(model),
        tolerance_(tolerance),
        within_lists_(within_lists),
        trials_(*trials) {}

  absl::StatusOr<SearchAnswer> Run();

 private:
  absl::Status FindCandidates();
  absl::Status MeasureReference();
  // What sets these candidates f32 and all others low.
  std::vector<Override> Overrides(const std::vector<int>& kept) const;
  absl::StatusOr<bool> IsEnough(const std::vector<int>& kept);
  absl::StatusOr<SearchAnswer> Answer(const std::vector<int>& kept) const;

  const CompiledModel& model_;
  const Tolerance& tolerance_;
  const bool within_lists_;
  Trials& trials_;
  std::vector<Candidate> candidates_;
  std::optional<Judge> judge_;                 // by the reference
  std::map<std::vector<int>, double> values_;  // of those that were enough
};

absl::Status Search::FindCandidates() {
  const passes::Level level = passes::LevelOf(model_.strategy.amp());
  if (level == passes::Level::kO0) {
    return UsageError(
        "search: the strategy's amp.level is O0, at which nothing is low; ask "
        "for the level that is to be searched, as --level O1");
  }
  HT_ASSIGN_OR_RETURN(const passes::KernelSet kernels,
                      KernelSetFor(model_.target));
  const DType low = passes::LowOf(model_.strategy.amp());
  absl::flat_hash_set<std::string> black;
  std::vector<Override> white;
  model_.ops.ForEach([&](const proto::OpRow& row) {
    if (within_lists_ || !IsBlackByList(row) ||
        !kernels.HasPrecision(row.type(), low)) {
      return;
    }
    black.insert(row.name());
    white.push_back({"amp.custom_white_opnames", row.name(), "search"});
  });
  HT_ASSIGN_OR_RETURN(const CompiledModel freed, RecompileWith(model_, white));
  freed.ops.ForEach([&](const proto::OpRow& row) {
    if (!IsForward(row) || row.precision() == "f32") return;
    candidates_.push_back({OpOf(row), black.contains(row.name())});
  });
  // The last op first: what follows an op in f32 may go f32 with it, so that of
  // a beginning of the model an op before the culprit would seem needed.
  std::reverse(candidates_.begin(), candidates_.end());
  if (!candidates_.empty()) return absl::OkStatus();
  return UsageError("search: no op of this model can run low on ",
                    model_.target, " under its strategy (halftone inspect)");
}

absl::Status Search::MeasureReference() {
  // A scale that the strategy sets is no part of f32.
  const std::vector<Override> plain = {
      {"amp.level", "O0", "search"},
      {"amp.loss_scaling.use_dynamic_loss_scaling", "false", "search"},
      {"amp.loss_scaling.init_loss_scaling", "1", "search"}};
  HT_ASSIGN_OR_RETURN(const CompiledModel reference,
                      RecompileWith(model_, plain));
  HT_ASSIGN_OR_RETURN(const std::vector<TrialValue> runs,
                      trials_.Measure(reference, "O0, the reference"));
  judge_ = Judge::By(tolerance_, runs);
  if (judge_.has_value()) return absl::OkStatus();
  return DivergedError(
      "search: the model diverges in f32, too; there is nothing that its ops "
      "in f16 or bf16 could be compared with");
}

std::vector<Override> Search::Overrides(const std::vector<int>& kept) const {
  std::vector<Override> overrides;
  size_t next = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const bool keep = next < kept.size() && kept[next] == static_cast<int>(i);
    if (keep) ++next;
    const Candidate& candidate = candidates_[i];
    // A black op that is kept is what its list says.
    if (keep == candidate.black) continue;
    overrides.push_back(
        {keep ? "amp.custom_black_opnames" : "amp.custom_white_opnames",
         candidate.op.name, "search"});
  }
  return overrides;
}

absl::StatusOr<bool> Search::IsEnough(const std::vector<int>& kept) {
  HT_ASSIGN_OR_RETURN(const CompiledModel model,
                      RecompileWith(model_, Overrides(kept)));
  HT_ASSIGN_OR_RETURN(
      const std::vector<TrialValue> runs,
      trials_.Measure(model, absl::StrCat(kept.size(), " of ",
                                          candidates_.size(), " ops in f32")));
  const Verdict verdict = judge_->Of(runs);
  if (verdict.misses) return false;
  values_[kept] = *verdict.value;
  return true;
}

absl::StatusOr<SearchAnswer> Search::Answer(
    const std::vector<int>& kept) const {
  SearchAnswer answer;
  answer.strategy = StrategyOf(model_).strategy;
  for (const Override& found : Overrides(kept)) {
    HT_RETURN_IF_ERROR(passes::SetStrategyField(&answer.strategy, found));
  }
  for (const int i : kept) answer.kept.push_back(candidates_[i].op);
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const int index = static_cast<int>(i);
    if (candidates_[i].black &&
        !std::binary_search(kept.begin(), kept.end(), index)) {
      answer.freed.push_back(candidates_[i].op);
    }
  }
  std::reverse(answer.kept.begin(), answer.kept.end());
  std::reverse(answer.freed.begin(), answer.freed.end());
  answer.candidates = static_cast<int>(candidates_.size());
  answer.reference = judge_->reference();
  answer.value = values_.at(kept);
  return answer;
}

absl::StatusOr<SearchAnswer> Search::Run() {
  HT_RETURN_IF_ERROR(FindCandidates());
  HT_RETURN_IF_ERROR(MeasureReference());
  HT_ASSIGN_OR_RETURN(const std::vector<int> kept,
                      SmallestSet(static_cast<int>(candidates_.size()),
                                  [this](const std::vector<int>& members) {
                                    return IsEnough(members);
                                  }));
  // That all of them are enough was taken as given.
  bool enough = values_.find(kept) != values_.end();
  if (!enough) {
    HT_ASSIGN_OR_RETURN(enough, IsEnough(kept));
  }
  if (!enough) {
    return MakeError(
        ExitCode::kDiffer,
        absl::StrCat("search: with all ", candidates_.size(), " ops in f32 ",
                     tolerance_.metric.name, " is still not within ",
                     tolerance_.most, " of O0's ",
                     tolerance_.metric.Text(judge_->reference()),
                     "; what is left is loss scaling, the level's other "
                     "properties and chance: take more --runs or a wider "
                     "--tolerance"));
  }
  return Answer(kept);
}

}  // namespace

absl::StatusOr<SearchAnswer> SearchPrecision(const CompiledModel& model,
                                             const Tolerance& tolerance,
                                             bool within_lists,
                                             Trials* trials) {
  return Search(model, tolerance, within_lists, trials).Run();
}

}  // namespace tools
}  // namespace halftone
