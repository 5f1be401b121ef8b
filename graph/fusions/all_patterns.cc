#include "graph/fusions/families.h"

namespace halftone {

// Larger groups before their parts.
const std::vector<FusionPattern>& FusionPatterns() {
  static const auto& patterns = *new std::vector<FusionPattern>{
      fusions::NormConvStats(),
      fusions::ConvStats(),
      fusions::NormConvGradFilter(),
      fusions::ConvGradNorm(),
      fusions::ReluGradNorm(),
      fusions::ConvBiasRelu(),
      fusions::MatmulBiasRelu(),
      fusions::MatmulGelu(),
      fusions::MatmulGeluGrad(),
      // Before the sums of what it makes, and those before the products that
      // read it.
      fusions::MatmulReluGrad(),
      fusions::ReluGradBias(),
      fusions::MatmulBiasGrad(),
      fusions::NormElementwise(),
      fusions::ElementwiseChain(),
  };
  return patterns;
}

const FusionPattern* FindFusionPattern(absl::string_view name) {
  for (const FusionPattern& pattern : FusionPatterns()) {
    if (pattern.name() == name) return &pattern;
  }
  return nullptr;
}

}  // namespace halftone
