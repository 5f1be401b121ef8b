#include "tools/common/planned_peak.h"

#include "graph/base/error.h"
#include "graph/ir/train_entries.h"
#include "graph/ir/well_known.h"
#include "graph/targets/target.h"
#include "runtime/gpu/targets.h"
#include "runtime/train/bindings.h"

namespace halftone {
namespace tools {

int64_t LargestMicroBatch(const proto::Dist& dist, absl::string_view entry,
                          int64_t samples) {
  if (!IsTrainEntry(entry) && entry != kAccumulateEntry) return samples;
  runtime::SamplerOptions one_rank;
  one_rank.shards = dist.virtual_shards();
  return runtime::StepCut(one_rank, samples, dist.gradient_merge().k_steps())
      .largest();
}

runtime::PlanRequest RequestFor(const Program& program,
                                const std::string& target,
                                const std::string& entry, int64_t samples,
                                int ranks) {
  const Target* const known = FindTarget(target);
  runtime::PlanRequest request;
  request.program = &program;
  request.entry = entry;
  request.symbols[0] = samples;
  request.bind.world_size = ranks;
  request.bind.target = target;
  request.stage_feeds = known != nullptr && known->is_gpu();
  return request;
}

absl::StatusOr<int64_t> PeakOf(const Program& program,
                               const std::string& target,
                               const std::string& entry, int64_t samples) {
  HT_ASSIGN_OR_RETURN(const auto* kernels, runtime::KernelsOf(target));
  return runtime::PeakBytes(
      RequestFor(program, target, entry, samples, /*ranks=*/1), *kernels,
      runtime::LayOutState(program), runtime::TuningTable());
}

}  // namespace tools
}  // namespace halftone
