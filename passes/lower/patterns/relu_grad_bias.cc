// reduce_sum(g) over all but channels, the gradient of a bias, with g =
// relu_grad(Out, OutGrad) and OutGrad maybe the sum of two: as relu_grad_norm.
#include <algorithm>
#include <vector>

#include "graph/schema/op_schema.h"
#include "passes/lower/patterns/relu_grad.h"

namespace halftone {
namespace passes {
namespace {

// Whether the op sums over all dims but the second.
bool IsChannelSum(const Block& block, OpId id) {
  if (!IsOp(block, id, "reduce_sum")) return false;
  const Op& op = block.op(id);
  const int rank = block.type(op.in(0)).rank();
  const auto& axes = AttrAs<std::vector<int64_t>>(op, "dim");
  return !AttrAs<bool>(op, "keep_dim") && !AttrAs<bool>(op, "reduce_all") &&
         rank >= 2 && static_cast<int>(axes.size()) == rank - 1 &&
         std::none_of(axes.begin(), axes.end(), [rank](int64_t axis) {
           return axis == 1 || axis == 1 - rank;
         });
}

}  // namespace

OpGroup MatchReluGradBias(const Block& block, OpId last,
                          const HeldValues& held) {
  if (!IsChannelSum(block, last)) return {};
  OpGroup group = ReluGradOf(block, block.op(last).in(0), held);
  if (!group.empty()) group.push_back(last);
  return group;
}

}  // namespace passes
}  // namespace halftone
