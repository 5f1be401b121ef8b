// channel_stats(conv2d(relu(scale_bias(X)), Filter)): what the norm and relu
// make is never in memory.
#include "passes/lower/patterns/norm_conv.h"

namespace halftone {
namespace passes {

OpGroup MatchNormConvStats(const Block& block, OpId last,
                           const HeldValues& held) {
  OpGroup group = MatchConvStats(block, last, held);
  if (group.empty()) return {};
  const OpId conv = group[0];
  const NormRelu before =
      NormReluFor(block, conv, InputOf(block.op(conv), "Input"), held);
  if (!before.valid()) return {};
  return {before.norm, before.relu, conv, last};
}

}  // namespace passes
}  // namespace halftone
