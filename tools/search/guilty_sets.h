// Which members of a set make a metric miss its tolerance when they are bad.
#ifndef HALFTONE_TOOLS_SEARCH_GUILTY_SETS_H_
#define HALFTONE_TOOLS_SEARCH_GUILTY_SETS_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "tools/search/metric.h"

namespace halftone {
namespace tools {

// What is measured with these members bad, which rise, and all others good.
using Measured =
    absl::FunctionRef<absl::StatusOr<Verdict>(const std::vector<int>& bad)>;
// What is measured of the cure: these members good, all others as the user has
// them.
using Cured =
    absl::FunctionRef<absl::StatusOr<Verdict>(const std::vector<int>& good)>;

struct GuiltySet {
  // Bad alone they miss the tolerance, and not without any of them.
  std::vector<int> members;
  Verdict verdict;  // of them alone
};
struct GuiltySets {
  std::vector<GuiltySet> sets;  // without a common member, in the order found
  // With their members good; it misses only where there are no sets.
  Verdict cure;
  // It holds if all others are as they are in the bad program, but not where
  // the user's own settings choose for them.
  bool needs_all = false;
};

// Asks for sets until the cure of those found holds. `bad`: all of 0 .. n-1,
// which misses. One guilty member of n is found, with its cure, in at most
// 4 + log2 n questions. No sets: the tolerance is missed with none bad, which
// `cure` then tells. Errors: those of what it asks.
absl::StatusOr<GuiltySets> FindGuiltySets(int n, const Verdict& bad,
                                          Measured measured, Cured cured);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_SEARCH_GUILTY_SETS_H_
