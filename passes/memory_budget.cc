#include "passes/memory_budget.h"

#include <algorithm>
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

// Looks for the largest memory.recompute.within whose plan is within a budget.
// The pass estimates what values take; the plan has what lies between them and
// kernels' workspaces, too: what one was off by is taken off the next estimate.
class BudgetSearch {
 public:
  BudgetSearch(const Options& options, int64_t samples, int64_t budget,
               PeakUnder peak)
      : options_(options), samples_(samples), budget_(budget), peak_(peak) {}

  // Nothing: no such plan was found; the least is least().
  absl::StatusOr<std::optional<Options>> Run(int64_t unlimited) {
    constexpr int kMostTries = 16;
    least_ = unlimited;
    int64_t too_small_from = 0, too_large_from = unlimited;
    int64_t within = budget_;
    std::optional<Options> found;
    for (int i = 0; i < kMostTries && within > too_small_from; ++i) {
      const Options tried = WithRecompute(options_, within);
      HT_ASSIGN_OR_RETURN(const int64_t peak, peak_(tried, samples_));
      least_ = std::min(least_, peak);
      int64_t next = within - (peak - budget_);
      if (peak <= budget_) {
        found = tried;
        peak_found_ = peak;
        too_small_from = within;
        if (budget_ - peak <= budget_ / 32) break;
      } else {
        too_large_from = within;
      }
      // Parameters may be most of a budget: nothing is made again before
      // `within` is of the size of what a step makes.
      const bool idle = peak == unlimited;
      if (idle || next <= too_small_from || next >= too_large_from) {
        next = too_small_from + (too_large_from - too_small_from) / 2;
      }
      within = next;
    }
    return found;
  }
  int64_t least() const { return least_; }
  int64_t peak() const { return peak_found_; }

 private:
  const Options& options_;
  const int64_t samples_, budget_;
  const PeakUnder peak_;
  int64_t least_ = 0, peak_found_ = 0;
};

}  // namespace

absl::StatusOr<Options> FitToBudget(const Options& options, PeakUnder peak,
                                    const std::string& rank,
                                    std::string* note) {
  const proto::Train& train = options.strategy.train();
  const int64_t budget = *BytesFromText(train.memory_budget());
  const int64_t samples = SamplesOfRank(train);
  const std::string at = absl::StrCat(" at ", samples, " samples on ", rank);
  // What fits as it is loses no digits.
  const Options kept = WithoutCompress(options);
  HT_ASSIGN_OR_RETURN(const int64_t needed, peak(kept, samples));
  const bool compresses = options.strategy.memory().compress().bits() > 0;
  if (needed <= budget) {
    *note = absl::StrCat(HumanBytes(needed), " of ", HumanBytes(budget), at,
                         ": nothing is made again",
                         compresses ? " or compressed" : "");
    return kept;
  }
  int64_t unlimited = needed;
  if (compresses) {
    HT_ASSIGN_OR_RETURN(unlimited,
                        peak(WithRecompute(options, needed * 2), samples));
  }
  BudgetSearch search(options, samples, budget, peak);
  HT_ASSIGN_OR_RETURN(const auto found, search.Run(unlimited));
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
                     HumanBytes(needed), ", with ", with, " ",
                     HumanBytes(search.least()),
                     " at least; raise it or lower train.batch_size"));
  }
  *note = absl::StrCat(HumanBytes(search.peak()), " of ", HumanBytes(budget),
                       at, " instead of ", HumanBytes(needed),
                       ": memory.recompute.within ",
                       found->strategy.memory().recompute().within());
  return *found;
}

}  // namespace passes
}  // namespace halftone
