#include "runtime/train/run_memory.h"

#include "graph/base/error.h"
#include "graph/ir/train_entries.h"
#include "graph/ir/well_known.h"
#include "graph/targets/target.h"
#include "runtime/plan/arena_sizes.h"
#include "runtime/train/resolve_fetches.h"
#include "runtime/train/run_plans.h"

namespace halftone {
namespace runtime {
namespace {

bool RunsOnGpus(const RunQuestion& question) {
  const Target* const target = FindTarget(question.target);
  return target != nullptr && target->is_gpu();
}

PlanRequest RequestOf(const RunQuestion& question, const BoundEntry& bound,
                      const KeptValues& kept) {
  PlanRequest request;
  request.program = question.program;
  request.entry = bound.entry;
  request.symbols[0] = bound.samples;
  request.bind.world_size = question.ranks;
  request.bind.threads = ThreadsOf(question);
  request.bind.target = question.target;
  request.stage_feeds = RunsOnGpus(question);
  if (IsTrainEntry(bound.entry)) request.kept = kept.always;
  return request;
}

}  // namespace

int ThreadsOf(const RunQuestion& question) {
  const bool one = RunsOnGpus(question) || question.dist->has_virtual_shards();
  return one ? 1 : question.threads;
}

absl::StatusOr<std::vector<BoundEntry>> EntriesOfRun(
    const RunQuestion& question) {
  const Program& program = *question.program;
  HT_RETURN_IF_ERROR(CheckShards(*question.dist, question.ranks));
  std::vector<BoundEntry> entries;
  const auto prepare = [&entries](absl::string_view entry,
                                  const SymbolValues& symbols) {
    entries.push_back({std::string(entry), symbols[0]});
    return absl::StatusOr<int>(static_cast<int>(entries.size()) - 1);
  };
  SamplerOptions sampler;
  sampler.size = sampler.batch = question.batch;
  sampler.world_size = question.ranks;
  sampler.shards = question.dist->virtual_shards();
  if (program.FindEntry(kTrainEntry) != nullptr) {
    HT_RETURN_IF_ERROR(
        PrepareTraining(program, *question.dist, sampler, prepare).status());
  }
  if (program.FindEntry(kEvalEntry) != nullptr) {
    SamplerOptions eval = EvalSampler(
        sampler, MergedSteps(program, *question.dist), /*samples=*/0);
    eval.size = eval.batch;
    HT_RETURN_IF_ERROR(Bindings().Prepare(kEvalEntry, eval, prepare));
  }
  for (const char* startup : {kInitEntry, kDeriveEntry}) {
    if (program.FindEntry(startup) == nullptr) continue;
    HT_RETURN_IF_ERROR(prepare(startup, SymbolValues{}).status());
  }
  return entries;
}

absl::StatusOr<RunMemory> MemoryOfRun(const RunQuestion& question,
                                      const kernels::KernelRegistry& kernels) {
  RunMemory memory;
  HT_ASSIGN_OR_RETURN(memory.entries, EntriesOfRun(question));
  HT_ASSIGN_OR_RETURN(const KeptValues kept,
                      ValuesToKeep(*question.program, /*texts=*/{}));
  const StateLayout state = LayOutState(*question.program, question.ranks);
  const TuningTable untuned;
  ArenaSizes sizes;
  ArenaBytes cells{};
  cells[static_cast<int>(ArenaKind::kState)] = state.bytes;
  sizes.Add("", cells);
  for (BoundEntry& bound : memory.entries) {
    HT_ASSIGN_OR_RETURN(bound.bytes,
                        PlannedArenas(RequestOf(question, bound, kept), kernels,
                                      state, untuned));
    sizes.Add(bound.entry, bound.bytes);
  }
  memory.arenas = sizes.Sums();
  return memory;
}

}  // namespace runtime
}  // namespace halftone
