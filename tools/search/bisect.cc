#include "tools/search/bisect.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "passes/options/options.h"
#include "runtime/log/words.h"
#include "tools/common/model_flags.h"
#include "tools/compare/compared_models.h"
#include "tools/report/diff_report.h"
#include "tools/search/guilty_sets.h"
#include "tools/search/op_precisions.h"

namespace halftone {
namespace tools {
namespace {

constexpr size_t kMostSettings = 5;

bool IsLow(const std::string& precision) {
  return precision == "f16" || precision == "bf16";
}

// What other than ops differs, of both strategies.
std::string OtherDifferences(const CompiledModel& good,
                             const CompiledModel& bad) {
  const auto difference = DifferenceOf(good, bad);
  if (!difference.ok() || difference->strategy.empty()) return "no setting";
  return runtime::JoinFew(difference->strategy, kMostSettings, ", ");
}

class Bisection {
 public:
  Bisection(const CompiledModel& good, const CompiledModel& bad,
            const Tolerance& tolerance, Trials* trials)
      : good_(good), bad_(bad), tolerance_(tolerance), trials_(*trials) {}

  absl::StatusOr<BisectAnswer> Run();

 private:
  absl::Status FindCandidates();
  absl::Status AddOp(const proto::OpRow& good, const proto::OpRow& bad);
  absl::Status MeasureBoth();
  absl::StatusOr<Verdict> Measure(const CompiledModel& model,
                                  const std::string& what);
  // The bad program's strategy with the precisions of these ops.
  passes::StrategyFile With(const OpPrecisions& low) const;
  // Every op that may change as in one of the two programs.
  OpPrecisions Mixed(const std::vector<int>& bad) const;
  OpPrecisions Cure(const std::vector<int>& good) const;
  absl::StatusOr<BisectAnswer> Answer(const GuiltySets& found) const;
  absl::Status NoOpIsToBlame(const Verdict& verdict) const;

  const CompiledModel& good_;
  const CompiledModel& bad_;
  const Tolerance& tolerance_;
  Trials& trials_;
  std::vector<std::string> model_ops_;
  std::vector<GuiltyOp> candidates_;  // ops whose precision differs
  OpPrecisions others_;  // that follow their neighbours if they are let
  std::optional<Judge> judge_;
  Verdict bad_verdict_;
  std::vector<FlakyVerdict> flaky_;
};

absl::Status Bisection::AddOp(const proto::OpRow& good,
                              const proto::OpRow& bad) {
  model_ops_.push_back(bad.name());
  const bool low = IsLow(bad.precision());
  if (low && IsLow(good.precision()) && good.precision() != bad.precision()) {
    return UsageError("bisect: ", bad.name(), " runs in ", good.precision(),
                      " in the good program and in ", bad.precision(),
                      " in the bad one; ops of one program share one low "
                      "precision: give both the same --dtype");
  }
  if (IsLow(good.precision()) != low) {
    candidates_.push_back({OpOf(bad), bad.precision(), good.precision()});
  } else if (low) {
    others_[bad.name()] = true;
  } else if (absl::StartsWith(bad.reason(), "GRAY") ||
             absl::StartsWith(bad.reason(), "CLEAR")) {
    others_[bad.name()] = false;
  }
  return absl::OkStatus();
}

absl::Status Bisection::FindCandidates() {
  std::map<std::string, proto::OpRow> goods;
  good_.ops.ForEach([&](const proto::OpRow& row) {
    if (IsForward(row)) goods[row.name()] = row;
  });
  size_t matched = 0;
  absl::Status status;
  bad_.ops.ForEach([&](const proto::OpRow& row) {
    if (!IsForward(row) || !status.ok()) return;
    const auto good = goods.find(row.name());
    if (good == goods.end()) {
      status = MakeError(
          ExitCode::kDiffer,
          absl::StrCat("bisect: not of one model: the good program has no op ",
                       row.name()));
      return;
    }
    ++matched;
    status = AddOp(good->second, row);
  });
  HT_RETURN_IF_ERROR(status);
  if (matched < goods.size()) {
    return MakeError(
        ExitCode::kDiffer,
        absl::StrCat("bisect: not of one model: the good program has ",
                     goods.size() - matched,
                     " more ops (halftone diff names them)"));
  }
  if (!candidates_.empty()) return absl::OkStatus();
  return MakeError(
      ExitCode::kDiffer,
      absl::StrCat("bisect: no op of ", ShortName(bad_),
                   " runs in another precision than in the good program: no "
                   "op's precision is to blame; what differs: ",
                   OtherDifferences(good_, bad_)));
}

absl::StatusOr<Verdict> Bisection::Measure(const CompiledModel& model,
                                           const std::string& what) {
  HT_ASSIGN_OR_RETURN(
      const std::vector<TrialValue> runs,
      trials_.Measure(model, what, [this](absl::Span<const TrialValue> values) {
        return judge_->IsDecided(values);
      }));
  const Verdict verdict = judge_->Of(runs);
  if (verdict.is_flaky()) flaky_.push_back({what, verdict});
  return verdict;
}

absl::Status Bisection::MeasureBoth() {
  std::vector<TrialValue> reference = {0};  // an error against itself
  if (tolerance_.metric.kind != Metric::Kind::kError) {
    HT_ASSIGN_OR_RETURN(
        reference,
        trials_.Measure(good_, absl::StrCat("good: ", ShortName(good_))));
  }
  judge_ = Judge::By(tolerance_, reference);
  if (!judge_.has_value()) {
    return DivergedError("bisect: the good program, ", ShortName(good_),
                         ", diverges, too; name another one by --good");
  }
  HT_ASSIGN_OR_RETURN(bad_verdict_,
                      Measure(bad_, absl::StrCat("bad: ", ShortName(bad_))));
  if (bad_verdict_.misses) return absl::OkStatus();
  return MakeError(
      ExitCode::kDiffer,
      absl::StrCat("bisect: ", ShortName(bad_),
                   " holds the tolerance: ", tolerance_.metric.name, " ",
                   tolerance_.metric.Text(bad_verdict_.value), ", within ",
                   tolerance_.most, " of the good program's ",
                   tolerance_.metric.Text(judge_->reference()),
                   "; there is nothing to find"));
}

passes::StrategyFile Bisection::With(const OpPrecisions& low) const {
  passes::StrategyFile strategy = StrategyOf(bad_);
  SetOpPrecisions(low, model_ops_, strategy.strategy.mutable_amp());
  return strategy;
}

OpPrecisions Bisection::Mixed(const std::vector<int>& bad) const {
  OpPrecisions low = others_;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const bool is_bad =
        std::binary_search(bad.begin(), bad.end(), static_cast<int>(i));
    low[candidates_[i].op.name] = IsLow(candidates_[i].bad) == is_bad;
  }
  return low;
}

OpPrecisions Bisection::Cure(const std::vector<int>& good) const {
  OpPrecisions low;
  for (const int i : good)
    low[candidates_[i].op.name] = IsLow(candidates_[i].good);
  return low;
}

absl::Status Bisection::NoOpIsToBlame(const Verdict& verdict) const {
  return MakeError(
      ExitCode::kDiffer,
      absl::StrCat("bisect: with all ", candidates_.size(),
                   " ops as in the good program ", tolerance_.metric.name,
                   " is ", tolerance_.metric.Text(verdict.value),
                   ", still not within ", tolerance_.most, " of its ",
                   tolerance_.metric.Text(judge_->reference()),
                   ": no op's precision is to blame; what else differs: ",
                   OtherDifferences(good_, bad_)));
}

absl::StatusOr<BisectAnswer> Bisection::Answer(const GuiltySets& found) const {
  BisectAnswer answer;
  std::vector<int> guilty, innocent;
  for (const GuiltySet& set : found.sets) {
    GuiltyOps ops;
    for (const int i : set.members) ops.ops.push_back(candidates_[i]);
    ops.verdict = set.verdict;
    answer.guilty.push_back(std::move(ops));
    guilty.insert(guilty.end(), set.members.begin(), set.members.end());
  }
  std::sort(guilty.begin(), guilty.end());
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const int index = static_cast<int>(i);
    if (!std::binary_search(guilty.begin(), guilty.end(), index)) {
      innocent.push_back(index);
    }
  }
  answer.strategy =
      With(found.needs_all ? Mixed(innocent) : Cure(guilty)).strategy;
  answer.candidates = static_cast<int>(candidates_.size());
  answer.good = judge_->reference();
  answer.bad = bad_verdict_;
  answer.cure = found.cure;
  answer.flaky = flaky_;
  return answer;
}

absl::StatusOr<BisectAnswer> Bisection::Run() {
  HT_RETURN_IF_ERROR(FindCandidates());
  HT_RETURN_IF_ERROR(MeasureBoth());
  const std::string of =
      absl::StrCat(" of ", candidates_.size(), " ops as in ");
  const auto measured =
      [&](const std::vector<int>& bad) -> absl::StatusOr<Verdict> {
    HT_ASSIGN_OR_RETURN(const CompiledModel model,
                        RecompileAs(bad_, With(Mixed(bad))));
    return Measure(model, absl::StrCat(bad.size(), of, "bad"));
  };
  const auto cured =
      [&](const std::vector<int>& good) -> absl::StatusOr<Verdict> {
    HT_ASSIGN_OR_RETURN(const CompiledModel model,
                        RecompileAs(bad_, With(Cure(good))));
    return Measure(model, absl::StrCat("cure: ", good.size(), of, "good"));
  };
  HT_ASSIGN_OR_RETURN(const GuiltySets found,
                      FindGuiltySets(static_cast<int>(candidates_.size()),
                                     bad_verdict_, measured, cured));
  if (found.sets.empty()) return NoOpIsToBlame(found.cure);
  return Answer(found);
}

}  // namespace

absl::StatusOr<BisectAnswer> Bisect(const CompiledModel& good,
                                    const CompiledModel& bad,
                                    const Tolerance& tolerance,
                                    Trials* trials) {
  return Bisection(good, bad, tolerance, trials).Run();
}

}  // namespace tools
}  // namespace halftone
