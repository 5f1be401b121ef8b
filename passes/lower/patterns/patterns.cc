#include <vector>

#include "passes/lower/patterns/pattern.h"

namespace halftone {
namespace passes {

absl::Span<const Pattern> AllPatterns() {
  static const auto& patterns = *new std::vector<Pattern>{
      {"conv_bias_relu", MatchConvBiasRelu},
      {"matmul_bias_relu", MatchMatmulBiasRelu},
      {"elementwise_chain", MatchElementwiseChain},
  };
  return patterns;
}

OpId OnlyFor(const Block& block, OpId reader, ValueId value,
             const HeldValues& held) {
  const OpId producer = block.value(value).op();
  if (!producer.valid() || held.Has(value)) return OpId();
  for (const Use& use : block.value(value).uses) {
    if (use.op != reader) return OpId();
  }
  const Op& op = block.op(producer);
  const bool alone = op.outputs.all().size() == 1 && op.body == nullptr &&
                     op.role == block.op(reader).role && !op.schema->no_merge();
  return alone ? producer : OpId();
}

}  // namespace passes
}  // namespace halftone
