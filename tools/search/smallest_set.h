// Which members of a set some property needs, found by asking about subsets.
#ifndef HALFTONE_TOOLS_SEARCH_SMALLEST_SET_H_
#define HALFTONE_TOOLS_SEARCH_SMALLEST_SET_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace halftone {
namespace tools {

// Whether the property holds with these members, which rise.
using Holds =
    absl::FunctionRef<absl::StatusOr<bool>(const std::vector<int>& members)>;

// A subset of 0 .. n-1 with which the property holds, and with none of whose
// members left out it does: what delta debugging (Zeller and Hildebrandt, 2002)
// calls 1-minimal. `holds` must be true of all n; no answer is asked twice.
// Where more members never do harm, k members of n are found in at most
// 1 + k (log2 n + 2) questions and the set is the smallest there is; otherwise
// (say, of noisy measurements) it still is 1-minimal by the answers given.
// Errors: those of `holds`.
absl::StatusOr<std::vector<int>> SmallestSet(int n, Holds holds);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_SEARCH_SMALLEST_SET_H_
