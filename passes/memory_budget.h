// What a step makes again, or compresses, so that it fits a budget of bytes.
#ifndef HALFTONE_PASSES_MEMORY_BUDGET_H_
#define HALFTONE_PASSES_MEMORY_BUDGET_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "passes/options/options.h"

namespace halftone {
namespace passes {

// What a step of so many samples on one rank needs, compiled by these options.
using PeakUnder = absl::FunctionRef<absl::StatusOr<int64_t>(
    const Options& options, int64_t samples)>;

// The options with the memory.recompute.within that train.memory_budget, which
// is set, asks for: what is compressed is chosen with it. Those that fit as
// they are stay so, or without memory.compress where that fits, too. At most 64
// questions. `rank`:
// for whom `peak` answers, "one rank". `note`: what was found. Errors (kModel):
// the budget cannot be met, with the least that was found; those of `peak`.
absl::StatusOr<Options> FitToBudget(const Options& options, PeakUnder peak,
                                    const std::string& rank, std::string* note);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_MEMORY_BUDGET_H_
