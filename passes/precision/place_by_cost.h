// Where ops run so that casts move the fewest bytes.
#ifndef HALFTONE_PASSES_PRECISION_PLACE_BY_COST_H_
#define HALFTONE_PASSES_PRECISION_PLACE_BY_COST_H_

#include <vector>

#include "absl/types/span.h"
#include "graph/ir/program.h"

namespace halftone {
namespace passes {

// Decides the ops of `open` (in any order), low or f32, so that the casts of
// one step's values read and write the fewest bytes of one sample, the other
// decisions given (by op id, of a train entry's forward ops): a cast of a value
// per dtype and that of its gradient, as insert-casts and append-backward make
// them. Casts of cells are none: they become cells. Of several such placements
// it takes the one with the most low ops. A minimum cut: exact.
void PlaceByCost(const Program& program, DType low, absl::Span<const OpId> open,
                 std::vector<Decision>* decisions);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PRECISION_PLACE_BY_COST_H_
