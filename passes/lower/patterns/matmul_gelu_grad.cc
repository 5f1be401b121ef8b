// gelu_grad(X, matmul(..)), by tanh, and the sum of its rows: the gradient of
// the bias of the product that the gelu read.
#include <string>

#include "graph/schema/op_registry.h"
#include "passes/lower/patterns/matmul_epilogue.h"

namespace halftone {
namespace passes {

OpGroup MatchMatmulGeluGrad(const Block& block, OpId last,
                            const HeldValues& held) {
  static const OpSchema* const kGeluGrad = Ops().Find("gelu_grad");
  const OpGroup group = MatchActivationGrad(block, last, kGeluGrad, held);
  if (group.empty()) return {};
  const Op& gradient = block.op(group[1]);
  const bool tanh = AttrAs<std::string>(gradient, "approximate") == "tanh";
  return tanh ? group : OpGroup();
}

}  // namespace passes
}  // namespace halftone
