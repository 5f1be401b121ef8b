// relu_grad(Out, matmul(..)) and the sum of its rows: the gradient of the bias
// of the product that the relu read.
#include "graph/schema/op_registry.h"
#include "passes/lower/patterns/matmul_epilogue.h"

namespace halftone {
namespace passes {

OpGroup MatchMatmulReluGrad(const Block& block, OpId last,
                            const HeldValues& held) {
  static const OpSchema* const kReluGrad = Ops().Find("relu_grad");
  return MatchActivationGrad(block, last, kReluGrad, held);
}

}  // namespace passes
}  // namespace halftone
