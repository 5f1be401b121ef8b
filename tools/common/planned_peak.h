// What a compiled program needs, by its plan.
#ifndef HALFTONE_TOOLS_COMMON_PLANNED_PEAK_H_
#define HALFTONE_TOOLS_COMMON_PLANNED_PEAK_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "graph/ir/program.h"
#include "runtime/plan/plan.h"

namespace halftone {
namespace tools {

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
