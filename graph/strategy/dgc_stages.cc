#include "graph/strategy/dgc_stages.h"

namespace halftone {

std::vector<DgcStage> DgcStages(const proto::Dgc& dgc) {
  std::vector<double> sparsities(dgc.sparsity().begin(), dgc.sparsity().end());
  if (sparsities.empty()) sparsities.push_back(0.999);
  std::vector<DgcStage> stages;
  const int64_t begin = dgc.rampup_begin_step();
  if (begin > 0) stages.push_back({1, -1});
  const auto count = static_cast<int64_t>(sparsities.size());
  int64_t at = 0;
  for (int64_t i = 0; i < count; ++i) {
    // The first step whose turn is after: rounded up.
    const int64_t next = ((i + 1) * dgc.rampup_step() + count - 1) / count;
    if (next > at || i + 1 == count) {
      stages.push_back({begin + at + 1, sparsities[i]});
    }
    at = next;
  }
  return stages;
}

}  // namespace halftone
