// Parts of a loss that have a scaler each (amp.loss_scaling.per_loss).
#ifndef HALFTONE_PASSES_DIFFERENTIATE_COMBINE_LOSSES_H_
#define HALFTONE_PASSES_DIFFERENTIATE_COMBINE_LOSSES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "graph/ir/program.h"

namespace halftone {
namespace passes {

// Whether train has such parts: as many seeds.
bool HasScalers(const Block& train);

// The gradients that one part has sent back, scaled by its loss scale; invalid
// where it has none. By cell id.
using PartGradients = std::vector<ValueId>;

// Behind the part's seed, and behind the last op of its backward:
//     @local_inv_scale.1: reciprocal(X=@loss_scaling.1)
//     @local_found_inf.1: check_finite(Low=[...], F32=[...],
//         InvScale=@local_inv_scale.1)
//     @local_not_finite.1: cast(X=@local_found_inf.1) {to=f32}
// insert-allreduce adds those up over the ranks.
absl::Status CheckPart(const Program& program, Block& block, int part,
                       const PartGradients& gradients);

// By part; what train's gradients are from then on, for each parameter:
//     w.grad.of.aux.unscaled: unscale(X=w.grad.of.aux,
//         InvScale=@local_inv_scale.1)
//     w.grad: sum(X=[w.grad.of.ce.unscaled, w.grad.of.aux.unscaled])
// in f32 and at the losses' true scale.
absl::Status CombineParts(const Program& program, Entry& train,
                          absl::Span<const PartGradients> gradients);

// That flag of the part; invalid: there are no scalers of parts.
ValueId NotFiniteOf(const Block& train, int part);
// The result that counts over the ranks.
std::string NotFiniteResult(int part);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_DIFFERENTIATE_COMBINE_LOSSES_H_
