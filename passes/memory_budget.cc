#include "passes/memory_budget.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "passes/options/byte_text.h"

namespace halftone {
namespace passes {
namespace {

Options WithRecompute(const Options& options, int64_t within) {
  Options other = options;
  other.strategy.mutable_memory()->mutable_recompute()->set_within(
      absl::StrCat(within));
  return other;
}

Options WithoutCompress(const Options& options) {
  Options other = options;
  proto::Compress* compress =
      other.strategy.mutable_memory()->mutable_compress();
  compress->set_bits(0);
  compress->clear_values();
  return other;
}

// Looks for a memory.recompute.within whose plan is within a budget. The pass
// estimates what values take; the plan has what lies between them and kernels'
// workspaces, too, and copies need room themselves: a smaller estimate may have
// a larger plan. The plan has `unlimited` bytes where all estimates fit, and
// `as_asked` without a limit: there all is compressed that may be.
class BudgetSearch {
 public:
  BudgetSearch(const Options& options, int64_t samples, int64_t budget,
               int64_t unlimited, int64_t as_asked, PeakUnder peak)
      : options_(options),
        samples_(samples),
        budget_(budget),
        unlimited_(unlimited),
        peak_(peak),
        least_(std::min(unlimited, as_asked)) {}

  // Nothing: no such plan was found; the least is least().
  absl::StatusOr<std::optional<Options>> Run() {
    HT_RETURN_IF_ERROR(Approach());
    if (!found_) HT_RETURN_IF_ERROR(Scan());
    return found_;
  }
  int64_t peak() const { return peak_found_; }
  int64_t least() const { return least_; }
  int64_t least_within() const { return least_within_; }  // 0: of none

 private:
  absl::StatusOr<int64_t> Try(int64_t within);
  // As if the plan grew with the estimate: the largest that is good enough.
  // What one was off by is taken off the next.
  absl::Status Approach();
  // Tries those spread over all sizes, then those beside the least so far,
  // until one is within the budget.
  absl::Status Scan();
  // Halfway to a neighbour of the least one; nothing: all are close together.
  std::optional<int64_t> BesideLeast(const std::map<int64_t, int64_t>& peaks,
                                     int64_t end) const;

  const Options& options_;
  const int64_t samples_, budget_, unlimited_;
  const PeakUnder peak_;
  std::optional<Options> found_;
  int64_t peak_found_ = 0, least_, least_within_ = 0;
};

absl::StatusOr<int64_t> BudgetSearch::Try(int64_t within) {
  const Options tried = WithRecompute(options_, within);
  HT_ASSIGN_OR_RETURN(const int64_t peak, peak_(tried, samples_));
  if (peak < least_) {
    least_ = peak;
    least_within_ = within;
  }
  if (peak <= budget_) {
    found_ = tried;
    peak_found_ = peak;
  }
  return peak;
}

absl::Status BudgetSearch::Approach() {
  constexpr int kMostTries = 16;
  int64_t too_small_from = 0, too_large_from = unlimited_;
  int64_t within = budget_;
  for (int i = 0; i < kMostTries && within > too_small_from; ++i) {
    HT_ASSIGN_OR_RETURN(const int64_t peak, Try(within));
    int64_t next = within - (peak - budget_);
    if (peak <= budget_) {
      too_small_from = within;
      if (budget_ - peak <= budget_ / 32) break;
    } else {
      too_large_from = within;
    }
    // Parameters may be most of a budget: nothing is made again before
    // `within` is of the size of what a step makes.
    const bool idle = peak == unlimited_;
    if (idle || next <= too_small_from || next >= too_large_from) {
      next = too_small_from + (too_large_from - too_small_from) / 2;
    }
    within = next;
  }
  return absl::OkStatus();
}

absl::Status BudgetSearch::Scan() {
  constexpr int kSpread = 16, kBeside = 16, kMostHalves = 12;
  std::map<int64_t, int64_t> peaks;  // by `within`
  const auto try_one = [&](int64_t within) -> absl::Status {
    HT_ASSIGN_OR_RETURN(peaks[within], Try(within));
    return absl::OkStatus();
  };
  // From there on nothing is made again.
  int64_t end = unlimited_;
  for (int i = 0; i < kMostHalves && !found_; ++i) {
    HT_RETURN_IF_ERROR(try_one(end / 2));
    if (peaks[end / 2] != unlimited_) break;
    end /= 2;
  }
  for (int i = kSpread; i-- > 0 && !found_;) {
    HT_RETURN_IF_ERROR(try_one(std::max<int64_t>(1, end * i / kSpread)));
  }
  for (int i = 0; i < kBeside && !found_; ++i) {
    const std::optional<int64_t> next = BesideLeast(peaks, end);
    if (!next) break;
    HT_RETURN_IF_ERROR(try_one(*next));
  }
  return absl::OkStatus();
}

std::optional<int64_t> BudgetSearch::BesideLeast(
    const std::map<int64_t, int64_t>& peaks, int64_t end) const {
  const int64_t close = std::max<int64_t>(1, end / 1024);
  std::optional<int64_t> next;
  int64_t least = 0, widest = 0;
  const auto look = [&](int64_t peak, int64_t from, int64_t to) {
    const int64_t gap = to - from;
    if (gap <= close) return;
    if (next && (peak > least || (peak == least && gap <= widest))) return;
    least = peak;
    widest = gap;
    next = from + gap / 2;
  };
  for (auto at = peaks.begin(); at != peaks.end(); ++at) {
    const auto after = std::next(at);
    look(at->second, at == peaks.begin() ? 0 : std::prev(at)->first, at->first);
    look(at->second, at->first, after == peaks.end() ? end : after->first);
  }
  return next;
}

// "recompute the least that was found is 9.5 MiB (9,981,440 B), by ...".
std::string LeastText(const BudgetSearch& search, const std::string& with) {
  std::string text = absl::StrCat(
      "with ", with, " the least that was found is ",
      HumanBytes(search.least()), " (", WithCommas(search.least()), " B)");
  if (search.least_within() > 0) {
    absl::StrAppend(&text, ", by memory.recompute.within ",
                    search.least_within());
  }
  return text;
}

}  // namespace

absl::StatusOr<Options> FitToBudget(const Options& options, PeakUnder peak,
                                    const std::string& rank,
                                    std::string* note) {
  const proto::Train& train = options.strategy.train();
  const int64_t budget = *BytesFromText(train.memory_budget());
  const int64_t samples = SamplesOfRank(train);
  const std::string at = absl::StrCat(" at ", samples, " samples on ", rank);
  const auto keep = [&](int64_t needed, const char* what) {
    *note = absl::StrCat(HumanBytes(needed), " of ", HumanBytes(budget), at,
                         ": ", what);
  };
  HT_ASSIGN_OR_RETURN(const int64_t needed, peak(options, samples));
  const bool compresses = options.strategy.memory().compress().bits() > 0;
  int64_t unlimited = needed;
  if (compresses) {
    // What fits without it loses no digits.
    const Options kept = WithoutCompress(options);
    HT_ASSIGN_OR_RETURN(const int64_t exact, peak(kept, samples));
    if (exact <= budget) {
      keep(exact, "nothing is made again or compressed");
      return kept;
    }
    HT_ASSIGN_OR_RETURN(unlimited,
                        peak(WithRecompute(options, exact * 2), samples));
  }
  if (needed <= budget) {
    keep(needed, compresses ? "compressed as asked for, nothing is made again"
                            : "nothing is made again");
    return options;
  }
  BudgetSearch search(options, samples, budget, unlimited, needed, peak);
  HT_ASSIGN_OR_RETURN(const auto found, search.Run());
  const std::string with = absl::StrCat(
      "recompute",
      compresses
          ? absl::StrCat(" and ", options.strategy.memory().compress().bits(),
                         " bits")
          : "");
  if (!found) {
    return FieldError(
        options, "train.memory_budget",
        absl::StrCat(HumanBytes(budget), " cannot be met", at, ": it needs ",
                     HumanBytes(needed), ", and ", LeastText(search, with),
                     "; raise it or lower train.batch_size"));
  }
  *note = absl::StrCat(HumanBytes(search.peak()), " of ", HumanBytes(budget),
                       at, " instead of ", HumanBytes(needed),
                       ": memory.recompute.within ",
                       found->strategy.memory().recompute().within());
  return *found;
}

}  // namespace passes
}  // namespace halftone
