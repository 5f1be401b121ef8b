// bn_grad_reduce(X, g), for one norm or two, with g = relu_grad(Out, OutGrad)
// and OutGrad maybe the sum of two: the sums of the norms' gradients are taken
// while g, which others read, too, is on its way to memory. In channels_last.
#include "passes/lower/patterns/relu_grad_norm.h"

#include "graph/schema/op_schema.h"

namespace halftone {
namespace passes {
namespace {

// Whether channels lie side by side.
bool HasInnerChannels(const TensorType& type) {
  return IsFloat(type.dtype) &&
         (type.rank() == 2 ||
          (type.rank() == 4 && type.layout == Layout::kChannelsLast));
}

bool IsSumOfTwo(const Block& block, OpId sum, TypeId type) {
  if (!IsOp(block, sum, "sum")) return false;
  const auto parts = block.op(sum).inputs.all();
  return parts.size() == 2 && block.type_id(parts[0]) == type &&
         block.type_id(parts[1]) == type;
}

// The op that makes a relu_grad's OutGrad for it alone, if there is one.
OpId Before(const Block& block, OpId relu_grad, const HeldValues& held) {
  return OnlyFor(block, relu_grad, InputOf(block.op(relu_grad), "OutGrad"),
                 held);
}

}  // namespace

OpId ReluGradBefore(const Block& block, const Op& norm_grad,
                    const HeldValues& held) {
  const ValueId gradient = InputOf(norm_grad, "YGrad");
  const ValueId x = InputOf(norm_grad, "X");
  const OpId mask = block.value(gradient).op();
  const TypeId type = block.type_id(gradient);
  const bool fits = IsOp(block, mask, "relu_grad") && x != gradient &&
                    HasInnerChannels(block.type(gradient)) &&
                    block.type_id(x) == type &&
                    block.type_id(InputOf(block.op(mask), "Out")) == type &&
                    block.type_id(InputOf(block.op(mask), "OutGrad")) == type;
  if (!fits) return OpId();
  // Other element-wise ops are better off in a chain with it: what they make is
  // then neither written nor read.
  const OpId before = Before(block, mask, held);
  const bool chain = before.valid() && block.op(before).schema->element_wise();
  return chain && !IsSumOfTwo(block, before, type) ? OpId() : mask;
}

OpGroup MatchReluGradNorm(const Block& block, OpId last,
                          const HeldValues& held) {
  if (!IsOp(block, last, "bn_grad_reduce")) return {};
  const OpId mask = ReluGradBefore(block, block.op(last), held);
  if (!mask.valid()) return {};
  OpGroup group = {mask, last};
  const ValueId gradient = block.op(mask).out(0);
  const OpId sum = Before(block, mask, held);
  if (IsSumOfTwo(block, sum, block.type_id(gradient))) group.push_back(sum);
  for (const Use& use : block.value(gradient).uses) {
    if (use.op == last || !IsOp(block, use.op, "bn_grad_reduce")) continue;
    if (ReluGradBefore(block, block.op(use.op), held) != mask) continue;
    group.push_back(use.op);
    break;
  }
  return group;
}

}  // namespace passes
}  // namespace halftone
