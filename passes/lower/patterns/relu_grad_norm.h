// The pattern relu_grad_norm, as split-batch-norm needs it.
#ifndef HALFTONE_PASSES_LOWER_PATTERNS_RELU_GRAD_NORM_H_
#define HALFTONE_PASSES_LOWER_PATTERNS_RELU_GRAD_NORM_H_

#include "passes/lower/patterns/pattern.h"

namespace halftone {
namespace passes {

// The relu_grad that the pattern fuses with the sums of `norm_grad`, a norm's
// gradient or its bn_grad_reduce; invalid: none.
OpId ReluGradBefore(const Block& block, const Op& norm_grad,
                    const HeldValues& held);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_PATTERNS_RELU_GRAD_NORM_H_
