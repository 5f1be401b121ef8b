// bn_grad_reduce(X, g) with g = relu_grad(relu(scale_bias(X)),
// conv2d_grad_input(OutputGrad, Filter)): the sums of a norm's gradient are
// taken while a tile of g is in registers; the sign is that of the norm, made
// again from X.
#include "passes/lower/patterns/norm_conv.h"

namespace halftone {
namespace passes {

OpGroup MatchConvGradNorm(const Block& block, OpId last,
                          const HeldValues& held) {
  if (!IsOp(block, last, "bn_grad_reduce")) return {};
  const Op& sums = block.op(last);
  const OpId mask = block.value(InputOf(sums, "YGrad")).op();
  if (!IsOp(block, mask, "relu_grad")) return {};
  const Op& relu_grad = block.op(mask);
  const OpId conv = OnlyFor(block, mask, InputOf(relu_grad, "OutGrad"), held);
  if (!IsFusedConv(block, conv, "conv2d_grad_input")) return {};
  const NormRelu before =
      NormReluFor(block, mask, InputOf(relu_grad, "Out"), held);
  if (!before.valid()) return {};
  // The norm that is made again is the one whose gradient this is.
  const Op& norm = block.op(before.norm);
  const bool same = InputOf(norm, "X") == InputOf(sums, "X") &&
                    InputOf(norm, "Mean") == InputOf(sums, "BatchMean") &&
                    InputOf(norm, "Variance") == InputOf(sums, "BatchVariance");
  if (!same) return {};
  return {conv, before.norm, before.relu, mask, last};
}

}  // namespace passes
}  // namespace halftone
