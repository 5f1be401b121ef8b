// What the patterns of a relu's gradient with sums over it share.
#ifndef HALFTONE_PASSES_LOWER_PATTERNS_RELU_GRAD_H_
#define HALFTONE_PASSES_LOWER_PATTERNS_RELU_GRAD_H_

#include "passes/lower/patterns/pattern.h"

namespace halftone {
namespace passes {

// The relu_grad that makes `gradient`, [N, C] or [N, C, H, W] in channels_last,
// and the sum of two that only it reads, if there is one. Empty if nothing can
// be gained by fusing it with sums over `gradient`.
OpGroup ReluGradOf(const Block& block, ValueId gradient,
                   const HeldValues& held);

// The same for the gradient that `norm_grad` takes, a norm's gradient or its
// bn_grad_reduce.
OpGroup ReluGradBefore(const Block& block, const Op& norm_grad,
                       const HeldValues& held);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_PATTERNS_RELU_GRAD_H_
