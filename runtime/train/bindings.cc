#include "runtime/train/bindings.h"

#include <algorithm>

#include "graph/base/check.h"
#include "graph/base/error.h"

namespace halftone {
namespace runtime {

std::vector<int64_t> GlobalCounts(const SamplerOptions& options) {
  const Sampler sampler(options);
  const int64_t samples = sampler.samples_per_epoch();
  const int64_t steps = sampler.steps_per_epoch();
  if (steps == 0) return {};
  std::vector<int64_t> counts = {std::min(options.batch, samples)};
  const int64_t last = samples - (steps - 1) * options.batch;
  if (last != counts[0]) counts.push_back(last);
  return counts;
}

int64_t RankCount(int64_t global, int world_size, int rank) {
  return global / world_size + (rank < global % world_size ? 1 : 0);
}

absl::Status Bindings::Prepare(const std::string& entry,
                               const SamplerOptions& sampler,
                               Executor& executor) {
  for (const int64_t global : GlobalCounts(sampler)) {
    SymbolValues symbols{};
    symbols[0] = RankCount(global, sampler.world_size, sampler.rank);
    HT_ASSIGN_OR_RETURN(const int index, executor.Prepare(entry, symbols));
    bindings_.push_back({global, index});
  }
  return absl::OkStatus();
}

int Bindings::Of(int64_t global) const {
  for (const Binding& binding : bindings_) {
    if (binding.global == global) return binding.index;
  }
  HT_CHECK(false, "every number of samples is prepared before step 1");
  return -1;
}

}  // namespace runtime
}  // namespace halftone
