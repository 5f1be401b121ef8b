#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/check.h"
#include "passes/lower/patterns/pattern.h"

namespace halftone {
namespace passes {
namespace {

constexpr char kPrologue[] =
    "scale / sqrt(variance + epsilon) and what is left of bias, in f16";
constexpr char kPlainSums[] =
    "the batch's variance, from plain sums of x and x * x, which cancel where "
    "the mean is far from 0";
}  // namespace

absl::Span<const Pattern> AllPatterns() {
  static const auto& patterns = *new std::vector<Pattern>{
      {"norm_conv_stats", MatchNormConvStats, "channel_stats",
       absl::StrCat(kPrologue, "; ", kPlainSums)},
      {"conv_stats", MatchConvStats, "channel_stats", kPlainSums},
      {"norm_conv_grad_filter", MatchNormConvGradFilter, "scale_bias",
       kPrologue},
      {"conv_grad_norm", MatchConvGradNorm, "bn_grad_reduce", ""},
      {"relu_grad_norm", MatchReluGradNorm, "bn_grad_reduce", ""},
      {"conv_bias_relu", MatchConvBiasRelu, "conv2d", ""},
      {"matmul_bias_relu", MatchMatmulBiasRelu, "matmul", ""},
      {"matmul_gelu", MatchMatmulGelu, "gelu", ""},
      {"matmul_gelu_grad", MatchMatmulGeluGrad, "gelu_grad", ""},
      {"matmul_relu_grad", MatchMatmulReluGrad, "relu_grad", ""},
      {"relu_grad_bias", MatchReluGradBias, "reduce_sum", ""},
      {"matmul_bias_grad", MatchMatmulBiasGrad, "reduce_sum", ""},
      {"norm_elementwise", MatchNormElementwise, "scale_bias", ""},
      {"elementwise_chain", MatchElementwiseChain, "", ""},
  };
  return patterns;
}

bool PatternSet::Has(absl::string_view name) const {
  for (const Pattern& pattern : AllPatterns()) {
    if (pattern.name == name) return Has(pattern);
  }
  HT_CHECK(false, "no such pattern");
  return false;
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
