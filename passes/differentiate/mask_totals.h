// Where a masked mean divides by a count that may be 0.
#ifndef HALFTONE_PASSES_DIFFERENTIATE_MASK_TOTALS_H_
#define HALFTONE_PASSES_DIFFERENTIATE_MASK_TOTALS_H_

#include <vector>

#include "graph/ir/program.h"

namespace halftone {
namespace passes {

// A model writes its masked mean itself, as sum(loss * mask) / sum(mask) or
// otherwise: on a rank whose mask is all zeros 0 / 0 is NaN, and so is its
// gradient, though the seed is 0. Totals of the mask are what is made of its
// feeds alone and has no sample axis any more; the ops that read one, or what
// comes of it, are those where such a NaN can arise.
//
// By value id: whether a gradient leaves those ops there. `needed` (by value
// id) are the values that have one. All false if the loss has no mask.
std::vector<bool> LeavesMaskTotals(const Program& program, const Block& block,
                                   const std::vector<bool>& needed);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_DIFFERENTIATE_MASK_TOTALS_H_
