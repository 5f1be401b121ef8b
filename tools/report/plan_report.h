// What `halftone plan` says.
#ifndef HALFTONE_TOOLS_REPORT_PLAN_REPORT_H_
#define HALFTONE_TOOLS_REPORT_PLAN_REPORT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "graph/io/compiled_model.h"
#include "runtime/plan/plan.h"

namespace halftone {
namespace tools {

struct PlanQuestion {
  int ranks = 1;
  int64_t batch = 0;  // of all ranks; 0: the strategy's
  std::string entry;  // empty: train, or eval where nothing trains
  int threads = 1;    // compute threads of a rank
};
// The plan of the rank with most samples, as many as a run gives the entry at
// once. Errors: kUsage, if nobody names a batch or the model has no such entry;
// EntriesOfRun's and MakePlan's.
struct AskedPlan {
  int64_t batch = 0;  // of all ranks
  runtime::Plan plan;
};
absl::StatusOr<AskedPlan> PlanAsked(const CompiledModel& model,
                                    const PlanQuestion& question);

// Peak and arenas of the rank with most samples, in a run with all its entries
// or for the one that is asked for; buckets, all-reduces, and a note where
// ranks stay without samples.
absl::StatusOr<std::string> PlanText(const CompiledModel& model,
                                     const PlanQuestion& question, bool json);
// The plan of rank 0, a line per step; as JSON the object of PlanText with
// `step_list`.
absl::StatusOr<std::string> StepsText(const CompiledModel& model,
                                      const PlanQuestion& question, bool json);
// The largest global batch whose ranks fit `memory` ("8GiB"; empty: what this
// machine has, shared by its ranks).
absl::StatusOr<std::string> MaxBatchText(const CompiledModel& model,
                                         const PlanQuestion& question,
                                         const std::string& memory, bool json);

// "8GiB", "512 MB", "1000000". Errors: kUsage, naming the flag.
absl::StatusOr<int64_t> ParseBytes(const std::string& flag,
                                   const std::string& text);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_PLAN_REPORT_H_
