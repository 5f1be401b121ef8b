#include "runtime/profile/roofline.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/layout.h"
#include "graph/schema/op_schema.h"
#include "runtime/profile/timeline.h"

namespace halftone {
namespace runtime {
namespace {

// `device`: null for a CPU.
bool IsOf(const Target& target, const DeviceRates* device) {
  if (device == nullptr) return !target.is_gpu();
  return std::any_of(
      target.devices.begin(), target.devices.end(),
      [device](const DeviceRates& d) { return d.name == device->name; });
}

}  // namespace

std::optional<Roofline> RooflineOf(const Target& target,
                                   absl::string_view description,
                                   const TuningTable& tuning) {
  Roofline roofline;
  const DeviceRates* sheet = FindDeviceRates(tuning.device_description);
  const TuningTable::Rates& rates = tuning.rates;
  if (rates.memory > 0 && IsOf(target, sheet)) {
    roofline.device = {
        tuning.device_description, static_cast<double>(rates.memory),
        static_cast<double>(rates.low), static_cast<double>(rates.f32),
        sheet == nullptr ? 0 : sheet->link};
    // What was measured is what kernels reach.
    roofline.reach.libraries = ReachOn(target).libraries;
    roofline.reach.launch = ReachOn(target).launch;
    roofline.measured = true;
    return roofline;
  }
  sheet = FindDeviceRates(description);
  if (sheet == nullptr) return std::nullopt;
  roofline.device = *sheet;
  roofline.reach = ReachOn(target);
  return roofline;
}

absl::string_view Name(Bound bound) {
  constexpr std::array<absl::string_view, 4> kNames = {"flops", "bytes", "link",
                                                       "launch"};
  return kNames[static_cast<int>(bound)];
}

Predicted Predict(const Step& step, const StepCost& cost,
                  const Roofline& roofline) {
  const DeviceRates& device = roofline.device;
  const Reach& reach = roofline.reach;
  const bool library =
      step.candidate != nullptr && reach.OfLibrary(step.candidate->name);
  const std::array<double, 4> seconds = {
      Over(cost.flops, reach.flops * MostFlops(device, cost.low && library)),
      Over(cost.bytes,
           device.memory * (library ? reach.library_memory : reach.own_memory)),
      Over(cost.sent, device.link), cost.launches * reach.launch};
  Predicted predicted;
  predicted.seconds = std::max({seconds[0], seconds[1], seconds[2]});
  predicted.bound = static_cast<Bound>(
      std::max_element(seconds.begin(), seconds.end()) - seconds.begin());
  predicted.seconds += seconds[3];
  return predicted;
}

PlanPrediction PredictPlan(const Plan& plan, const Roofline& roofline) {
  PlanPrediction prediction;
  prediction.costs = CostsOf(plan);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    prediction.steps.push_back(
        Predict(plan.steps[i], prediction.costs[i], roofline));
  }
  std::vector<double> ms;
  for (const Predicted& step : prediction.steps) {
    ms.push_back(1000 * step.seconds);
  }
  for (const Executor::Span& span : ScheduleOf(plan, ms, /*overlap=*/true)) {
    prediction.seconds = std::max(prediction.seconds, span.end / 1000);
  }
  return prediction;
}

std::string KernelOf(const Step& step) {
  if (step.kind != Step::Kind::kKernel) return std::string(Name(step.kind));
  const Op& op = step.block->op(step.op);
  return absl::StrCat(op.body == nullptr ? op.schema->name()
                                         : AttrAs<std::string>(op, "pattern"),
                      " ", step.candidate->name);
}

std::string ShapeOf(const Plan& plan, const Step& step) {
  if (step.kind != Step::Kind::kKernel) return "";
  const Block& block = *step.block;
  kernels::TensorDesc largest;
  for (ValueId output : block.op(step.op).outputs.all()) {
    kernels::TensorDesc desc = kernels::Bind(block.type(output), plan.symbols);
    if (largest.dims.empty() || desc.bytes() > largest.bytes()) {
      largest = std::move(desc);
    }
  }
  largest.layout = Layout::kRowMajor;  // is not said
  return kernels::ToString(largest);
}

}  // namespace runtime
}  // namespace halftone
