#include "tools/common/planned_peak.h"

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/targets/target.h"
#include "runtime/gpu/targets.h"
#include "runtime/log/words.h"

namespace halftone {
namespace tools {

runtime::PlanRequest RequestFor(const Program& program,
                                const std::string& target,
                                const std::string& entry, int64_t samples,
                                int ranks, int threads) {
  const Target* const known = FindTarget(target);
  runtime::PlanRequest request;
  request.program = &program;
  request.entry = entry;
  request.symbols[0] = samples;
  request.bind.world_size = ranks;
  request.bind.threads = threads;
  request.bind.target = target;
  request.stage_feeds = known != nullptr && known->is_gpu();
  return request;
}

absl::StatusOr<int64_t> PeakOf(const Program& program,
                               const std::string& target,
                               const std::string& entry, int64_t samples) {
  HT_ASSIGN_OR_RETURN(const auto* kernels, runtime::KernelsOf(target));
  HT_ASSIGN_OR_RETURN(
      const runtime::ArenaBytes bytes,
      runtime::PlannedArenas(RequestFor(program, target, entry, samples,
                                        /*ranks=*/1, /*threads=*/1),
                             *kernels, runtime::LayOutState(program),
                             runtime::TuningTable()));
  return runtime::TotalOf(bytes);
}

int64_t BatchOf(const proto::Strategy& strategy, int ranks) {
  const proto::Train& train = strategy.train();
  return train.batch_size() > 0 ? train.batch_size()
                                : train.batch_size_per_rank() * ranks;
}

runtime::RunQuestion QuestionOf(const CompiledModel& model, int64_t batch,
                                int ranks, int threads) {
  runtime::RunQuestion question;
  question.program = model.program.get();
  question.dist = &model.strategy.dist();
  question.target = model.target;
  question.batch = batch;
  question.ranks = ranks;
  question.threads = threads;
  return question;
}

absl::StatusOr<runtime::RunMemory> PlannedMemory(
    const runtime::RunQuestion& question) {
  HT_ASSIGN_OR_RETURN(const auto* kernels, runtime::KernelsOf(question.target));
  return runtime::MemoryOfRun(question, *kernels);
}

std::string ThreadsText(const char* preposition,
                        const runtime::RunQuestion& question) {
  const Target* const target = FindTarget(question.target);
  if (target != nullptr && target->is_gpu()) return "";
  return absl::StrCat(preposition,
                      runtime::Count(runtime::ThreadsOf(question), "thread"));
}

}  // namespace tools
}  // namespace halftone
