#include "runtime/train/run_plans.h"

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/ir/train_entries.h"
#include "graph/ir/well_known.h"
#include "graph/strategy/dgc_stages.h"

namespace halftone {
namespace runtime {

int64_t MergedSteps(const Program& program, const proto::Dist& dist) {
  return program.FindEntry(kAccumulateEntry) == nullptr
             ? 1
             : dist.gradient_merge().k_steps();
}

absl::StatusOr<TrainingBindings> PrepareTraining(const Program& program,
                                                 const proto::Dist& dist,
                                                 const SamplerOptions& sampler,
                                                 PrepareEntry prepare) {
  TrainingBindings made;
  HT_RETURN_IF_ERROR(
      made.steps.PrepareSteps(sampler, MergedSteps(program, dist), prepare));
  const std::vector<DgcStage> stages =
      dist.has_dgc() ? DgcStages(dist.dgc()) : std::vector<DgcStage>();
  for (size_t i = 0; i + 1 < stages.size(); ++i) {
    const std::string entry = TrainStageEntry(i, stages.size());
    // Nothing is large enough to be compressed.
    if (program.FindEntry(entry) == nullptr) break;
    StepStage& stage = made.stages.emplace_back();
    stage.end = stages[i + 1].first_step;
    HT_RETURN_IF_ERROR(stage.bindings.Prepare(entry, sampler, prepare));
  }
  // One rank has nobody to average with.
  if (sampler.world_size > 1 && program.FindEntry(kAverageEntry) != nullptr) {
    HT_ASSIGN_OR_RETURN(made.average, prepare(kAverageEntry, SymbolValues{}));
  }
  return made;
}

SamplerOptions EvalSampler(SamplerOptions sampler, int64_t merged_steps,
                           int64_t samples) {
  sampler.batch = PartOf(sampler.batch, merged_steps, 0).count;
  sampler.size = samples;
  sampler.tail = Tail::kExact;
  sampler.shuffle = false;
  if (sampler.shards > 0) {
    sampler.unit = PartOf(sampler.batch, sampler.shards, 0).count;
    sampler.batch = sampler.unit * sampler.world_size;
    sampler.shards = 0;
  }
  return sampler;
}

absl::Status CheckShards(const proto::Dist& dist, int world_size) {
  if (dist.virtual_shards() % world_size == 0) return absl::OkStatus();
  std::vector<int64_t> numbers;
  for (int64_t ranks = 1; ranks <= dist.virtual_shards(); ++ranks) {
    if (dist.virtual_shards() % ranks == 0) numbers.push_back(ranks);
  }
  return ModelError("dist.virtual_shards ", dist.virtual_shards(),
                    ": expected a number of ranks that divides it (",
                    absl::StrJoin(numbers, ", "), "), found ", world_size,
                    "; run on one of these or compile with other shards");
}

}  // namespace runtime
}  // namespace halftone
