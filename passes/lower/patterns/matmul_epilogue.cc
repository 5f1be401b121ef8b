#include "passes/lower/patterns/matmul_epilogue.h"

#include <vector>

#include "graph/schema/op_registry.h"

namespace halftone {
namespace passes {
namespace {

bool IsOf(const Block& block, OpId op, const OpSchema* schema) {
  return op.valid() && block.op(op).schema == schema;
}

}  // namespace

bool IsEpilogueProduct(const Block& block, OpId op) {
  static const OpSchema* const kMatmul = Ops().Find("matmul");
  if (!IsOf(block, op, kMatmul)) return false;
  const Op& product = block.op(op);
  return block.dtype(product.in(0)) == block.dtype(product.out(0));
}

bool SumsRows(const Block& block, OpId op) {
  static const OpSchema* const kReduceSum = Ops().Find("reduce_sum");
  if (!IsOf(block, op, kReduceSum)) return false;
  const Op& sum = block.op(op);
  const TensorType& x = block.type(sum.in(0));
  if (x.dtype != block.dtype(sum.out(0)) || AttrAs<bool>(sum, "keep_dim")) {
    return false;
  }
  std::vector<int64_t> all_but_last;
  for (int i = 0; i + 1 < x.rank(); ++i) all_but_last.push_back(i);
  return !all_but_last.empty() &&
         AttrAs<std::vector<int64_t>>(sum, "dim") == all_but_last;
}

OpGroup MatchActivationGrad(const Block& block, OpId last, const OpSchema* type,
                            const HeldValues& held) {
  const bool sums = SumsRows(block, last);
  const OpId gradient = sums ? block.value(block.op(last).in(0)).op() : last;
  if (!IsOf(block, gradient, type)) return {};
  const OpId product =
      OnlyFor(block, gradient, InputOf(block.op(gradient), "OutGrad"), held);
  if (!IsEpilogueProduct(block, product)) return {};
  if (!sums) return {product, last};
  // Of a batch a library makes one sum for each of its products.
  const bool one = block.type(InputOf(block.op(product), "Y")).rank() == 2;
  const bool backward = block.op(gradient).role == block.op(last).role;
  return one && backward ? OpGroup{product, gradient, last} : OpGroup();
}

}  // namespace passes
}  // namespace halftone
