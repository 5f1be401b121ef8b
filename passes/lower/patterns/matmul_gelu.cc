// gelu(matmul(X, Y)), by tanh, with or without Bias: libraries have no other
// one in their products. What the gradient reads, the product itself, the
// fusion makes, too.
#include <string>

#include "graph/schema/op_registry.h"
#include "passes/lower/patterns/matmul_epilogue.h"

namespace halftone {
namespace passes {

OpGroup MatchMatmulGelu(const Block& block, OpId last, const HeldValues&) {
  static const OpSchema* const kGelu = Ops().Find("gelu");
  const Op& gelu = block.op(last);
  if (gelu.schema != kGelu) return {};
  if (AttrAs<std::string>(gelu, "approximate") != "tanh") return {};
  const OpId product = block.value(gelu.in(0)).op();
  if (!IsEpilogueProduct(block, product)) return {};
  if (block.op(product).role != gelu.role) return {};
  return {product, last};
}

}  // namespace passes
}  // namespace halftone
