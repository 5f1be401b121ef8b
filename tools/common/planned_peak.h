// What a compiled program needs, by its plan.
#ifndef HALFTONE_TOOLS_COMMON_PLANNED_PEAK_H_
#define HALFTONE_TOOLS_COMMON_PLANNED_PEAK_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/ir/program.h"
#include "proto/strategy.pb.h"
#include "runtime/plan/plan.h"

namespace halftone {
namespace tools {

// How many samples a program of the entry runs with at once in a step of
// `samples` on one rank: train those of its largest micro-batch.
int64_t LargestMicroBatch(const proto::Dist& dist, absl::string_view entry,
                          int64_t samples);

// `samples`: what the program runs with at once.
runtime::PlanRequest RequestFor(const Program& program,
                                const std::string& target,
                                const std::string& entry, int64_t samples,
                                int ranks);

// On one rank.
absl::StatusOr<int64_t> PeakOf(const Program& program,
                               const std::string& target,
                               const std::string& entry, int64_t samples);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_PLANNED_PEAK_H_
