// What a compiled program needs, by its plans.
#ifndef HALFTONE_TOOLS_COMMON_PLANNED_PEAK_H_
#define HALFTONE_TOOLS_COMMON_PLANNED_PEAK_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "graph/io/compiled_model.h"
#include "graph/ir/program.h"
#include "proto/strategy.pb.h"
#include "runtime/plan/plan.h"
#include "runtime/train/run_memory.h"

namespace halftone {
namespace tools {

// `samples`: what the program runs with at once.
runtime::PlanRequest RequestFor(const Program& program,
                                const std::string& target,
                                const std::string& entry, int64_t samples,
                                int ranks, int threads);

// Of an entry alone, on one rank with one thread.
absl::StatusOr<int64_t> PeakOf(const Program& program,
                               const std::string& target,
                               const std::string& entry, int64_t samples);

// Global batch of a strategy on `ranks` ranks; 0: it names none.
int64_t BatchOf(const proto::Strategy& strategy, int ranks);
// What a run of the model with so many samples of all ranks is.
runtime::RunQuestion QuestionOf(const CompiledModel& model, int64_t batch,
                                int ranks, int threads = 1);

// runtime::MemoryOfRun with the target's kernels.
absl::StatusOr<runtime::RunMemory> PlannedMemory(
    const runtime::RunQuestion& question);

// " of 2 threads": what it counts, behind the preposition; empty where there
// are none to count, on GPUs.
std::string ThreadsText(const char* preposition,
                        const runtime::RunQuestion& question);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_PLANNED_PEAK_H_
