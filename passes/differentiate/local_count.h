// n_r: what the loss is a mean over, counted on this rank.
#ifndef HALFTONE_PASSES_DIFFERENTIATE_LOCAL_COUNT_H_
#define HALFTONE_PASSES_DIFFERENTIATE_LOCAL_COUNT_H_

#include "absl/status/statusor.h"
#include "graph/ir/program.h"

namespace halftone {
namespace passes {

inline constexpr char kLocalCount[] = "@local_count";

// The value `@local_count` : f32[] of `block`, which has the program's loss:
// the elements of what the loss is a mean over, the samples where that has no
// sample axis, or the sum of the loss's mask, added in f32. It is made on first
// demand, right behind what it counts.
absl::StatusOr<ValueId> LocalCount(const Program& program, Block& block);

// The value `@rank_weight` : f32[] of `block`, 1: what a rank counts for where
// gradients are means over ranks (gradient_mean: "ranks").
absl::StatusOr<ValueId> RankWeight(Block& block);

// The first feed that has the sample axis; invalid if there is none.
ValueId SamplesFeed(const Block& block);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_DIFFERENTIATE_LOCAL_COUNT_H_
