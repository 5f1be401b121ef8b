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

StepCut::StepCut(const SamplerOptions& sampler, int64_t global,
                 int64_t merged_steps)
    : sampler_(sampler), global_(global) {
  const int64_t fullest = RankRange(sampler, global, 0).count;
  parts_ = sampler.shards > 0
               ? sampler.shards / sampler.world_size
               : std::max<int64_t>(1, std::min(merged_steps, fullest));
}

SampleRange StepCut::At(int rank, int64_t number) const {
  const SampleRange own = RankRange(sampler_, global_, rank);
  if (sampler_.shards == 0) return PartOf(own.count, parts_, number);
  SampleRange shard = PartOf(global_, sampler_.shards, rank * parts_ + number);
  shard.begin -= own.begin;
  return shard;
}

absl::Status Bindings::Prepare(absl::string_view entry,
                               const SamplerOptions& sampler,
                               PrepareEntry prepare) {
  for (const int64_t global : GlobalCounts(sampler)) {
    SymbolValues symbols{};
    symbols[0] = RankRange(sampler, global, sampler.rank).count;
    HT_ASSIGN_OR_RETURN(const int index, prepare(entry, symbols));
    bindings_.push_back({global, index});
  }
  return absl::OkStatus();
}

absl::Status Bindings::PrepareSteps(const SamplerOptions& sampler,
                                    int64_t merged_steps,
                                    PrepareEntry prepare) {
  const int last = sampler.world_size - 1;
  SymbolValues symbols{};
  for (const int64_t global : GlobalCounts(sampler)) {
    const StepCut cut(sampler, global, merged_steps);
    const int64_t parts = cut.parts();
    Binding binding{global, -1};
    while (binding.num_larger < parts &&
           cut.At(binding.num_larger).count > cut.At(parts - 1).count) {
      ++binding.num_larger;
    }
    const auto prepare_part = [&](const char* entry, int64_t part) {
      symbols[0] = cut.At(part).count;
      return prepare(entry, symbols);
    };
    HT_ASSIGN_OR_RETURN(binding.index, prepare_part(kTrainEntry, parts - 1));
    // By what all ranks hold, so that ranks prepare as many plans.
    const bool uneven = cut.largest() != cut.At(last, parts - 1).count;
    if (parts > 1) {
      HT_ASSIGN_OR_RETURN(binding.smaller,
                          prepare_part(kAccumulateEntry, parts - 1));
    }
    if (parts > 1 && uneven) {
      HT_ASSIGN_OR_RETURN(binding.larger, prepare_part(kAccumulateEntry, 0));
    }
    bindings_.push_back(binding);
  }
  return absl::OkStatus();
}

int Bindings::Accumulating(int64_t global, int64_t number) const {
  const Binding& binding = At(global);
  return number < binding.num_larger ? binding.larger : binding.smaller;
}

std::vector<int> Bindings::Uneven() const {
  std::vector<int> uneven;
  for (const Binding& binding : bindings_) {
    if (binding.larger < 0) continue;
    uneven.insert(uneven.end(), {binding.larger, binding.smaller});
  }
  return uneven;
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
