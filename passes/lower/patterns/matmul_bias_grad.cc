// matmul(X, g) or matmul(g, Y) over the rows of g, and the sums of those: the
// gradients of a product's matrix and of its bias, from one look at g. Where g
// has leading dims the product reads them flattened.
#include "graph/schema/op_registry.h"
#include "passes/lower/patterns/matmul_epilogue.h"

namespace halftone {
namespace passes {
namespace {

// Whether the op is a product that adds over the rows of the matrix `g`.
bool AddsRowsOf(const Block& block, OpId op, ValueId g, const Op& sum) {
  if (!IsEpilogueProduct(block, op) || block.op(op).role != sum.role) {
    return false;
  }
  const Op& product = block.op(op);
  const ValueId x = InputOf(product, "X"), y = InputOf(product, "Y");
  if (x == y || block.type(x).rank() != 2 || block.type(y).rank() != 2) {
    return false;
  }
  return (y == g && !AttrAs<bool>(product, "trans_y")) ||
         (x == g && AttrAs<bool>(product, "trans_x"));
}

}  // namespace

OpGroup MatchMatmulBiasGrad(const Block& block, OpId last,
                            const HeldValues& held) {
  static const OpSchema* const kFlatten = Ops().Find("flatten");
  if (!SumsRows(block, last)) return {};
  const Op& sum = block.op(last);
  const ValueId g = sum.in(0);
  const bool matrix = block.type(g).rank() == 2;
  for (const Use& use : block.value(g).uses) {
    if (matrix) {
      if (AddsRowsOf(block, use.op, g, sum)) return {use.op, last};
      continue;
    }
    const Op& flatten = block.op(use.op);
    if (flatten.schema != kFlatten) continue;
    const ValueId rows = flatten.out(0);
    if (block.type(rows).rank() != 2 || block.value(rows).uses.size() != 1) {
      continue;
    }
    const OpId product = block.value(rows).uses[0].op;
    if (!AddsRowsOf(block, product, rows, sum)) continue;
    // Its last dim is g's.
    if (block.type(rows).dims[1] != block.type(g).dims.back()) continue;
    if (OnlyFor(block, product, rows, held) == use.op) {
      return {use.op, product, last};
    }
  }
  return {};
}

}  // namespace passes
}  // namespace halftone
