// relu(matmul(X, Y, Bias)).
#include "passes/lower/patterns/linear_relu.h"
#include "passes/lower/patterns/pattern.h"

namespace halftone {
namespace passes {

std::vector<OpId> MatchMatmulBiasRelu(const Block& block, OpId last,
                                      const HeldValues& held) {
  return MatchLinearRelu(block, last, "matmul", held);
}

}  // namespace passes
}  // namespace halftone
