// What the patterns of a linear op with a bias and a relu share.
#ifndef HALFTONE_PASSES_LOWER_PATTERNS_LINEAR_RELU_H_
#define HALFTONE_PASSES_LOWER_PATTERNS_LINEAR_RELU_H_

#include "passes/lower/patterns/pattern.h"

namespace halftone {
namespace passes {

// {linear, last} if `last` is a relu and the only reader of a `type` op that
// has a Bias; else empty.
OpGroup MatchLinearRelu(const Block& block, OpId last, const OpSchema* type,
                        const HeldValues& held);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_PATTERNS_LINEAR_RELU_H_
