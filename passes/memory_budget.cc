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
                                    std::string* note) {
  const proto::Train& train = options.strategy.train();
  const int64_t budget = *BytesFromText(train.memory_budget());
  const int64_t samples =
      train.batch_size() > 0 ? train.batch_size() : train.batch_size_per_rank();
  const std::string at = absl::StrCat(" at ", samples, " samples on one rank");
  HT_ASSIGN_OR_RETURN(const int64_t unlimited, peak(options, samples));
  if (unlimited <= budget) {
    *note = absl::StrCat(HumanBytes(unlimited), " of ", HumanBytes(budget), at,
                         ": nothing is made again");
    return options;
  }
  BudgetSearch search(options, samples, budget, peak);
  HT_ASSIGN_OR_RETURN(const auto found, search.Run(unlimited));
  if (!found) {
    return FieldError(
        options, "train.memory_budget",
        absl::StrCat(HumanBytes(budget), " cannot be met", at, ": it needs ",
                     HumanBytes(unlimited), ", with recompute ",
                     HumanBytes(search.least()),
                     " at least; raise it or lower train.batch_size"));
  }
  *note = absl::StrCat(HumanBytes(search.peak()), " of ", HumanBytes(budget),
                       at, " instead of ", HumanBytes(unlimited),
                       ": memory.recompute.within ",
                       found->strategy.memory().recompute().within());
  return *found;
}

}  // namespace passes
}  // namespace halftone
