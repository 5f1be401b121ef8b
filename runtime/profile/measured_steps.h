// What the steps of a plan took when they were measured: from the trace that
// `run --profile=FILE` writes.
#ifndef HALFTONE_RUNTIME_PROFILE_MEASURED_STEPS_H_
#define HALFTONE_RUNTIME_PROFILE_MEASURED_STEPS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/plan/plan.h"

namespace halftone {
namespace runtime {

struct MeasuredSteps {
  // Milliseconds, by name and whether it is a collective; a name that comes
  // several times in a step has several; of each, by the steps of the trace.
  std::map<std::pair<std::string, bool>, std::vector<std::vector<double>>> ms;
  std::vector<double> host_ms;  // of a step, in which nothing of the plan runs
};

// Errors (kModel) name `file`: no trace, or one without a whole step.
absl::StatusOr<MeasuredSteps> ParseTrace(absl::string_view content,
                                         absl::string_view file);
absl::StatusOr<MeasuredSteps> ReadTrace(const std::string& file);

struct SlowestSteps {
  std::vector<double> ms;  // by the plan's steps; below 0: none was measured
  double host_ms = 0;
};
// What the slowest of `ranks` takes, for which the others wait at the next
// collective. The steps of the trace stand for ranks: as many draws of what is
// computed from one collective to the next have their maximum, in half of all
// cases, below its quantile 0.5^(1 / ranks); the medians of its parts are
// stretched to that.
SlowestSteps SlowestOf(int ranks, const Plan& plan,
                       const MeasuredSteps& measured);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_PROFILE_MEASURED_STEPS_H_
