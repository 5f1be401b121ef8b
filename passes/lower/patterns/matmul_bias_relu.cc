// relu(matmul(X, Y, Bias)).
#include "graph/schema/op_registry.h"
#include "passes/lower/patterns/linear_relu.h"

namespace halftone {
namespace passes {

OpGroup MatchMatmulBiasRelu(const Block& block, OpId last,
                            const HeldValues& held) {
  static const OpSchema* const kMatmul = Ops().Find("matmul");
  return MatchLinearRelu(block, last, kMatmul, held);
}

}  // namespace passes
}  // namespace halftone
