// relu(conv2d(Input, Filter, Bias)): the bias is added and the sign tested
// while the convolution's tile is still in registers.
#include "passes/lower/patterns/linear_relu.h"
#include "passes/lower/patterns/pattern.h"

namespace halftone {
namespace passes {

std::vector<OpId> MatchConvBiasRelu(const Block& block, OpId last,
                                    const HeldValues& held) {
  return MatchLinearRelu(block, last, "conv2d", held);
}

}  // namespace passes
}  // namespace halftone
