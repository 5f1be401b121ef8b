// channel_stats(conv2d(Input, Filter)): a tile's sums are taken while it is
// still in registers. The convolution's result is read elsewhere, too.
#include "passes/lower/patterns/norm_conv.h"

namespace halftone {
namespace passes {

OpGroup MatchConvStats(const Block& block, OpId last, const HeldValues&) {
  if (!IsOp(block, last, "channel_stats")) return {};
  const OpId conv = block.value(block.op(last).in(0)).op();
  if (!IsFusedConv(block, conv, "conv2d")) return {};
  return {conv, last};
}

}  // namespace passes
}  // namespace halftone
