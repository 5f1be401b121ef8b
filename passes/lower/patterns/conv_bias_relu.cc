// relu(conv2d(Input, Filter, Bias)): the bias is added and the sign tested
// while the convolution's tile is still in registers.
#include "graph/schema/op_registry.h"
#include "passes/lower/patterns/linear_relu.h"

namespace halftone {
namespace passes {

OpGroup MatchConvBiasRelu(const Block& block, OpId last,
                          const HeldValues& held) {
  static const OpSchema* const kConv2d = Ops().Find("conv2d");
  return MatchLinearRelu(block, last, kConv2d, held);
}

}  // namespace passes
}  // namespace halftone
