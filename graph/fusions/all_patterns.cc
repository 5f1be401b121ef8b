#include "graph/fusions/families.h"

namespace halftone {

const std::vector<FusionPattern>& FusionPatterns() {
  static const auto& patterns = *[] {
    auto* made = new std::vector<FusionPattern>;
    for (const auto pattern : fusions::kPatterns) made->push_back(pattern());
    return made;
  }();
  return patterns;
}

const FusionPattern* FindFusionPattern(absl::string_view name) {
  for (const FusionPattern& pattern : FusionPatterns()) {
    if (pattern.name() == name) return &pattern;
  }
  return nullptr;
}

}  // namespace halftone
