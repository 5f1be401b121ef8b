#include "passes/lower/patterns/linear_relu.h"

#include "graph/schema/op_registry.h"

namespace halftone {
namespace passes {

OpGroup MatchLinearRelu(const Block& block, OpId last, const OpSchema* type,
                        const HeldValues& held) {
  static const OpSchema* const kRelu = Ops().Find("relu");
  const Op& relu = block.op(last);
  if (relu.schema != kRelu) return {};
  const OpId linear = OnlyFor(block, last, relu.in(0), held);
  if (!linear.valid()) return {};
  const Op& op = block.op(linear);
  if (op.schema != type) return {};
  if (!op.inputs.has(op.schema->FindInput("Bias"))) return {};
  return {linear, last};
}

}  // namespace passes
}  // namespace halftone
