// What `halftone plan --roofline` says.
#ifndef HALFTONE_TOOLS_REPORT_ROOFLINE_REPORT_H_
#define HALFTONE_TOOLS_REPORT_ROOFLINE_REPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "graph/io/compiled_model.h"
#include "runtime/plan/tuning_table.h"
#include "tools/report/plan_report.h"

namespace halftone {
namespace tools {

// The predicted time of a step of the rank with most samples: the largest
// steps of its plan, classes, samples per second; as JSON all steps. `tuning`:
// the table beside the model. Errors: kUsage where no rates are known, with the
// command that measures them.
absl::StatusOr<std::string> RooflineText(const CompiledModel& model,
                                         const PlanQuestion& question,
                                         const runtime::TuningTable& tuning,
                                         bool json);

// "3350 GB/s, 67 TFLOP/s in f32, 989 TFLOP/s in 16 bit": bytes and operations
// per second; `low` 0: no word of it.
std::string RatesText(double memory, double f32, double low);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_ROOFLINE_REPORT_H_
