// One verdict where each rank checks something else.
#ifndef HALFTONE_PASSES_PARALLEL_COMBINE_VERDICTS_H_
#define HALFTONE_PASSES_PARALLEL_COMBINE_VERDICTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {

// Whose norms of gradients clips read: those of whole gradients, of which each
// rank has a shard, or each rank's own.
enum class Norms : uint8_t { kOfShards, kOwn };

// Has all that reads train's check_finite read what combine_checks makes of all
// ranks' checks.
absl::Status CombineChecks(Entry& train, Norms norms, HeldValues& held);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PARALLEL_COMBINE_VERDICTS_H_
