#include "passes/lower/patterns/relu_grad.h"

#include <algorithm>

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

bool AllAre(const Block& block, absl::Span<const ValueId> values, TypeId type) {
  return std::all_of(values.begin(), values.end(), [&](ValueId value) {
    return block.type_id(value) == type;
  });
}

}  // namespace

OpGroup ReluGradOf(const Block& block, ValueId gradient,
                   const HeldValues& held) {
  const OpId mask = block.value(gradient).op();
  if (!IsOp(block, mask, "relu_grad")) return {};
  const TypeId type = block.type_id(gradient);
  const Op& relu_grad = block.op(mask);
  if (!HasInnerChannels(block.type(gradient)) ||
      !AllAre(block, relu_grad.inputs.all(), type)) {
    return {};
  }
  const OpId before = OnlyFor(block, mask, InputOf(relu_grad, "OutGrad"), held);
  if (!before.valid()) return {mask};
  const auto parts = block.op(before).inputs.all();
  if (IsOp(block, before, "sum") && parts.size() == 2 &&
      AllAre(block, parts, type)) {
    return {before, mask};
  }
  // Other element-wise ops are better off in a chain with it: what they make is
  // then neither written nor read.
  if (block.op(before).schema->element_wise()) return {};
  return {mask};
}

OpGroup ReluGradBefore(const Block& block, const Op& norm_grad,
                       const HeldValues& held) {
  const ValueId gradient = InputOf(norm_grad, "YGrad");
  const ValueId x = InputOf(norm_grad, "X");
  if (x == gradient || block.type_id(x) != block.type_id(gradient)) return {};
  return ReluGradOf(block, gradient, held);
}

}  // namespace passes
}  // namespace halftone
