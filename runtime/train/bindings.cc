#include "runtime/train/bindings.h"

#include <algorithm>

#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"

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

int64_t MicroBatchesOf(int64_t global, int world_size, int64_t merged_steps) {
  const int64_t fullest = RankCount(global, world_size, 0);
  return std::max<int64_t>(1, std::min(merged_steps, fullest));
}

MicroBatch MicroBatchAt(int64_t samples, int64_t micro_batches,
                        int64_t number) {
  const int64_t each = samples / micro_batches, more = samples % micro_batches;
  return {number * each + std::min(number, more),
          each + (number < more ? 1 : 0)};
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

absl::Status Bindings::PrepareSteps(const SamplerOptions& sampler,
                                    int64_t merged_steps, Executor& executor) {
  const int ranks = sampler.world_size;
  SymbolValues symbols{};
  for (const int64_t global : GlobalCounts(sampler)) {
    const int64_t samples = RankCount(global, ranks, sampler.rank);
    const int64_t parts = MicroBatchesOf(global, ranks, merged_steps);
    Binding binding{global, -1};
    binding.num_larger = samples % parts;
    const auto prepare = [&](const char* entry, int64_t part) {
      symbols[0] = MicroBatchAt(samples, parts, part).count;
      return executor.Prepare(entry, symbols);
    };
    HT_ASSIGN_OR_RETURN(binding.index, prepare(kTrainEntry, parts - 1));
    // By what all ranks hold, so that ranks prepare as many plans.
    const bool uneven = RankCount(global, ranks, 0) % parts != 0 ||
                        RankCount(global, ranks, ranks - 1) % parts != 0;
    if (parts > 1) {
      HT_ASSIGN_OR_RETURN(binding.smaller,
                          prepare(kAccumulateEntry, parts - 1));
    }
    if (parts > 1 && uneven) {
      HT_ASSIGN_OR_RETURN(binding.larger, prepare(kAccumulateEntry, 0));
    }
    bindings_.push_back(binding);
  }
  return absl::OkStatus();
}

int Bindings::Accumulating(int64_t global, int64_t number) const {
  const Binding& binding = At(global);
  return number < binding.num_larger ? binding.larger : binding.smaller;
}

const Bindings::Binding& Bindings::At(int64_t global) const {
  const auto found = std::find_if(
      bindings_.begin(), bindings_.end(),
      [global](const Binding& binding) { return binding.global == global; });
  HT_CHECK(found != bindings_.end(),
           "every number of samples is prepared before step 1");
  return *found;
}

}  // namespace runtime
}  // namespace halftone
