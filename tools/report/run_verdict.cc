#include "tools/report/run_verdict.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "passes/options/options.h"
#include "runtime/log/words.h"

namespace halftone {
namespace tools {
namespace {

using runtime::ThreeDigits;

constexpr double kManySkipped = 0.05, kMuchFlushed = 0.01;

struct Fall {
  double early = 0, late = 0;
  bool finite = true;  // at the end
  double by() const { return early - late; }
};

std::optional<Fall> FallOf(const RunHistory& run, const std::string& name) {
  const auto found = run.series.find(name);
  if (found == run.series.end()) return std::nullopt;
  const std::vector<ThinnedSeries::Bucket>& buckets = found->second.buckets();
  const size_t tenth = (buckets.size() + 9) / 10;
  const auto mean = [&](size_t begin) -> std::optional<double> {
    double sum = 0;
    int64_t count = 0;
    for (size_t i = begin; i < begin + tenth; ++i) {
      sum += buckets[i].sum;
      count += buckets[i].count;
    }
    if (count == 0) return std::nullopt;
    return sum / static_cast<double>(count);
  };
  if (buckets.empty()) return std::nullopt;
  const std::optional<double> early = mean(0),
                              late = mean(buckets.size() - tenth);
  return Fall{early.value_or(0), late.value_or(0), early && late};
}

// Of the metric in evals that comes first by name; a run may have none.
std::optional<Fall> MetricOf(const RunHistory& run) {
  for (const auto& [name, series] : run.series) {
    if (!absl::StartsWith(name, "eval ") || name == "eval loss") continue;
    return FallOf(run, name);
  }
  return std::nullopt;
}

// That the last eval's loss is no number, though steps' losses may be: one's
// running statistics, say. Empty: it is, or there was no eval.
std::string EvalLossText(const RunHistory& run) {
  const auto evals = run.series.find("eval loss");
  if (evals == run.series.end() || evals->second.buckets().empty()) return "";
  const double last = evals->second.last();
  if (std::isfinite(last)) return "";
  return absl::StrCat("the eval loss is ", ThreeDigits(last));
}

bool Diverged(const RunHistory& run) {
  const auto says = [](const nlohmann::json& json, const char* member) {
    return json.is_object() && json.contains(member) &&
           json[member] == static_cast<int>(ExitCode::kDiverged);
  };
  if (says(run.summary, "exit") || says(run.failure, "exit_code")) return true;
  if (!EvalLossText(run).empty()) return true;
  const std::optional<Fall> fall = FallOf(run, "loss");
  return fall.has_value() && !fall->finite;
}

// Whether `run` is as far as `best` but for kBehind: of a metric of evals, or
// of what the loss has come down by.
bool IsBehind(const RunHistory& run, const RunHistory& best) {
  const std::optional<Fall> own = MetricOf(run), other = MetricOf(best);
  if (own && other) return own->late < (1 - kBehind) * other->late;
  const Fall loss = *FallOf(run, "loss"), least = *FallOf(best, "loss");
  return loss.late - least.late > kBehind * least.by();
}

// The one with the best metric, or else whose loss has come furthest down;
// null: none has.
const RunHistory* BestOf(absl::Span<const RunHistory> all) {
  const RunHistory* best = nullptr;
  double most = 0;
  for (const RunHistory& run : all) {
    const std::optional<Fall> loss = FallOf(run, "loss");
    if (!loss || Diverged(run)) continue;
    const std::optional<Fall> metric = MetricOf(run);
    const double reached = metric ? metric->late : loss->by();
    if (reached <= most) continue;
    most = reached;
    best = &run;
  }
  return best;
}

// Whether as much of the loss is logged that its way can be told: of a run
// that is over two points, of one that has only begun more than its start.
bool IsKnown(const RunHistory& run) {
  const auto loss = run.series.find("loss");
  if (loss == run.series.end()) return false;
  int64_t points = 0;
  for (const auto& bucket : loss->second.buckets()) {
    points += bucket.count + bucket.not_finite;
  }
  const bool is_over = !run.summary.is_null() || !run.failure.is_null();
  return points >= (is_over ? 2 : kFewestLogged);
}

std::string WentOf(const RunHistory& run, absl::Span<const RunHistory> all) {
  if (Diverged(run)) return "diverged";
  if (!IsKnown(run)) return "";
  const std::optional<Fall> loss = FallOf(run, "loss");
  if (loss->by() < kStill * loss->early) return "stands still";
  const RunHistory* const best = BestOf(all);
  return best != nullptr && IsBehind(run, *best)
             ? absl::StrCat("falls behind ", best->directory)
             : "trains";
}

// Null: the run's summary has none, or none that can be read.
std::optional<proto::Strategy> StrategyOf(const RunHistory& run) {
  if (!run.summary.is_object()) return std::nullopt;
  const auto text = run.summary.find("strategy");
  if (text == run.summary.end() || !text->is_string()) return std::nullopt;
  absl::StatusOr<passes::StrategyFile> file =
      passes::ParseStrategy(text->get<std::string>(), run.directory);
  if (!file.ok()) return std::nullopt;
  return std::move(file->strategy);
}

std::string SkippedText(const RunHistory& run) {
  int64_t skipped = 0;
  for (const auto& bucket : run.skipped.buckets()) skipped += bucket.count;
  if (skipped == 0 || skipped < kManySkipped * run.last_step) return "";
  return absl::StrCat(WithCommas(skipped), " of ",
                      runtime::Count(run.last_step, "step"),
                      skipped == 1 ? " was" : " were", " skipped");
}

std::string ScaleText(const RunHistory& run, const proto::Amp& amp) {
  const auto scales = run.series.find("loss_scaling");
  if (scales == run.series.end() || scales->second.buckets().empty()) return "";
  const double last = scales->second.buckets().back().least;
  const proto::LossScaling& scaling = amp.loss_scaling();
  if (!scaling.use_dynamic_loss_scaling() ||
      last > scaling.min_loss_scaling() ||
      last >= scaling.init_loss_scaling()) {
    return "";
  }
  return absl::StrCat("the loss scale is at its least, ", ThreeDigits(last));
}

// What f16 has made 0, of all gradients and of the worst one.
std::string FlushedText(const RunHistory& run) {
  RunHistory::Flushed sum;
  const std::pair<const std::string, RunHistory::Flushed>* worst = nullptr;
  for (const auto& one : run.flushed) {
    sum.elements += one.second.elements;
    sum.lost += one.second.lost;
    if (worst == nullptr || one.second.share() > worst->second.share()) {
      worst = &one;
    }
  }
  if (worst == nullptr || sum.share() < kMuchFlushed) return "";
  const auto percent = [](double share) {
    return absl::StrCat(ThreeDigits(100 * share), " %");
  };
  return absl::StrCat(percent(sum.share()),
                      " of the gradients' elements are 0 in f16, of ",
                      worst->first, " ", percent(worst->second.share()));
}

}  // namespace

RunVerdict VerdictOf(const RunHistory& run, absl::Span<const RunHistory> all) {
  RunVerdict verdict;
  verdict.went = WentOf(run, all);
  const auto add = [&verdict](std::string text) {
    if (!text.empty()) verdict.why.push_back(std::move(text));
  };
  add(EvalLossText(run));
  add(SkippedText(run));
  const std::optional<proto::Strategy> strategy = StrategyOf(run);
  if (strategy) add(ScaleText(run, strategy->amp()));
  if (verdict.went == "trains") return verdict;
  add(FlushedText(run));
  const bool low = strategy && strategy->amp().level() != "O0";
  if (low && !strategy->amp().master_weights()) {
    add("parameters have no f32 copies: less than 2^-11 of one changes nothing "
        "in f16");
  }
  return verdict;
}

std::string Text(const RunVerdict& verdict) {
  if (verdict.went.empty()) return "";
  return absl::StrCat(verdict.went, verdict.why.empty() ? "" : ": ",
                      absl::StrJoin(verdict.why, "; "));
}

}  // namespace tools
}  // namespace halftone
