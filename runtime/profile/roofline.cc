#include "runtime/profile/roofline.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/layout.h"
#include "graph/schema/op_schema.h"

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

// When the last step of either stream is over.
double SecondsOf(const Plan& plan, const std::vector<Predicted>& predicted) {
  std::array<double, 2> now = {0, 0};  // by stream
  std::vector<double> events;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    double& clock = now[static_cast<int>(step.stream)];
    for (int event : step.waits) clock = std::max(clock, events[event]);
    clock += predicted[i].seconds;
    if (step.records < 0) continue;
    events.resize(std::max<size_t>(events.size(), step.records + 1), 0);
    events[step.records] = clock;
  }
  return std::max(now[0], now[1]);
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
  const bool low = cost.low && library && device.low > 0;
  const std::array<double, 4> seconds = {
      Over(cost.flops, reach.flops * (low ? device.low : device.f32)),
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
  prediction.seconds = SecondsOf(plan, prediction.steps);
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
