// bn_grad_reduce(X, g), for one norm or two, with g = relu_grad(Out, OutGrad)
// and OutGrad maybe the sum of two: the sums of the norms' gradients are taken
// while g, which others read, too, is on its way to memory. In channels_last.
#include "passes/lower/patterns/relu_grad.h"

namespace halftone {
namespace passes {

OpGroup MatchReluGradNorm(const Block& block, OpId last,
                          const HeldValues& held) {
  if (!IsOp(block, last, "bn_grad_reduce")) return {};
  OpGroup group = ReluGradBefore(block, block.op(last), held);
  if (group.empty()) return {};
  const ValueId gradient = InputOf(block.op(last), "YGrad");
  group.push_back(last);
  for (const Use& use : block.value(gradient).uses) {
    if (use.op == last || !IsOp(block, use.op, "bn_grad_reduce")) continue;
    const Op& other = block.op(use.op);
    if (InputOf(other, "YGrad") != gradient ||
        ReluGradBefore(block, other, held).empty()) {
      continue;
    }
    group.push_back(use.op);
    break;
  }
  return group;
}

}  // namespace passes
}  // namespace halftone
