#include "passes/lower/patterns/linear_relu.h"

#include "graph/schema/op_registry.h"
#include "passes/lower/patterns/pattern.h"

namespace halftone {
namespace passes {

std::vector<OpId> MatchLinearRelu(const Block& block, OpId last,
                                  absl::string_view linear_type,
                                  const HeldValues& held) {
  const Op& relu = block.op(last);
  if (relu.schema != Ops().Find("relu")) return {};
  const OpId linear = OnlyFor(block, last, relu.in(0), held);
  if (!linear.valid()) return {};
  const Op& op = block.op(linear);
  if (op.schema != Ops().Find(linear_type)) return {};
  if (!op.inputs.has(op.schema->FindInput("Bias"))) return {};
  return {linear, last};
}

}  // namespace passes
}  // namespace halftone
