// conv2d_grad_filter(relu(scale_bias(X)), OutputGrad).
#include "passes/lower/patterns/norm_conv.h"

namespace halftone {
namespace passes {

OpGroup MatchNormConvGradFilter(const Block& block, OpId last,
                                const HeldValues& held) {
  if (!IsFusedConv(block, last, "conv2d_grad_filter")) return {};
  const NormRelu before =
      NormReluFor(block, last, InputOf(block.op(last), "Input"), held);
  if (!before.valid()) return {};
  return {before.norm, before.relu, last};
}

}  // namespace passes
}  // namespace halftone
