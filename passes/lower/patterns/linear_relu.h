// What the patterns of a linear op with a bias and a relu share.
#ifndef HALFTONE_PASSES_LOWER_PATTERNS_LINEAR_RELU_H_
#define HALFTONE_PASSES_LOWER_PATTERNS_LINEAR_RELU_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "graph/ir/program.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {

// {linear, last} if `last` is a relu and the only reader of a `linear_type`
// op that has a Bias; else empty.
std::vector<OpId> MatchLinearRelu(const Block& block, OpId last,
                                  absl::string_view linear_type,
                                  const HeldValues& held);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_PATTERNS_LINEAR_RELU_H_
