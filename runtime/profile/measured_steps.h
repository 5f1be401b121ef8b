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
  // Milliseconds, medians over the steps of the trace, by name and whether it
  // is a collective; a name that comes several times in a step has several.
  std::map<std::pair<std::string, bool>, std::vector<double>> ms;
  double host_ms = 0;  // of a step, in which nothing of the plan runs
};

// Errors (kModel) name `file`: no trace, or one without a whole step.
absl::StatusOr<MeasuredSteps> ParseTrace(absl::string_view content,
                                         absl::string_view file);
absl::StatusOr<MeasuredSteps> ReadTrace(const std::string& file);

// By the plan's steps; below 0: none of that name was measured.
std::vector<double> MeasuredMs(const Plan& plan, const MeasuredSteps& measured);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_PROFILE_MEASURED_STEPS_H_
