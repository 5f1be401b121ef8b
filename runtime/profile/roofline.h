// What a plan's steps will take, by what they must do and what kernels reach of
// a device's rates: of `plan --roofline`, and beside what was measured in
// `run --profile`.
#ifndef HALFTONE_RUNTIME_PROFILE_ROOFLINE_H_
#define HALFTONE_RUNTIME_PROFILE_ROOFLINE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/targets/reach.h"
#include "graph/targets/target.h"
#include "runtime/plan/plan.h"
#include "runtime/profile/step_costs.h"

namespace halftone {
namespace runtime {

struct Roofline {
  DeviceRates device;
  Reach reach;
  bool measured = false;  // by `halftone tune`; else from a data sheet
};
// Of a device of the target: as measured, where the table was made on one, else
// by the data sheet of the described one. Nothing: neither is known.
std::optional<Roofline> RooflineOf(const Target& target,
                                   absl::string_view description,
                                   const TuningTable& tuning);

// What a step waits for most.
enum class Bound : uint8_t { kFlops, kBytes, kLink, kLaunch };
absl::string_view Name(Bound bound);  // "flops", "bytes", "link", "launch"

struct Predicted {
  double seconds = 0;
  Bound bound = Bound::kBytes;
};
// The longest of flops, bytes and what is sent, and the launch: no kernel
// begins before the one in front of it is over. The model is that of Williams,
// Waterman and Patterson, "Roofline: an insightful visual performance model",
// 2009.
Predicted Predict(const Step& step, const StepCost& cost,
                  const Roofline& roofline);

struct PlanPrediction {
  std::vector<StepCost> costs;   // by the plan's steps
  std::vector<Predicted> steps;  // likewise
  // The two streams beside each other, as their events have it.
  double seconds = 0;
};
PlanPrediction PredictPlan(const Plan& plan, const Roofline& roofline);

// What runs a step and on what: "conv_stats cudnn", "f16[256,64,112,112]" (the
// largest output).
std::string KernelOf(const Step& step);
std::string ShapeOf(const Plan& plan, const Step& step);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_PROFILE_ROOFLINE_H_
