#include "runtime/profile/step_costs.h"

#include <algorithm>
#include <array>

#include "graph/base/dtype.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace runtime {
namespace {

// Whether no dim of its first output depends on the number of samples.
bool MakesConstantShape(const Block& block, const Op& op) {
  const Dims& dims = block.type(op.outputs.all()[0]).dims;
  return std::all_of(dims.begin(), dims.end(),
                     [](const Dim& dim) { return dim.is_constant(); });
}

CostClass ClassOf(const Block& block, const Op& op, Role role) {
  switch (op.schema->work()) {
    case Work::kElements:
      return CostClass::kElementwise;
    case Work::kNorm:
      return CostClass::kNorm;
    case Work::kCast:
      return CostClass::kCast;
    case Work::kDataGrad:
      return CostClass::kDataGrad;
    case Work::kWeightGrad:
      return CostClass::kWeightGrad;
    case Work::kProduct:
      break;
  }
  if (role == Role::kForward) return CostClass::kForward;
  return MakesConstantShape(block, op) ? CostClass::kWeightGrad
                                       : CostClass::kDataGrad;
}

// Adds what an op costs, or the ops of its body: products give a fusion its
// class, then norms.
void AddOp(const Block& block, const Op& op, const SymbolValues& symbols,
           Role role, StepCost* cost) {
  if (op.body != nullptr) {
    for (OpId id : op.body->ops()) {
      AddOp(*op.body, op.body->op(id), symbols, role, cost);
    }
    return;
  }
  if (const FlopsOf flops = op.schema->flops()) {
    cost->flops += static_cast<double>(flops(block, op).Evaluate(symbols));
    cost->cost_class = ClassOf(block, op, role);
    cost->low = IsLow(block.dtype(op.in(0)));
  } else if (cost->flops == 0 && op.schema->work() == Work::kNorm) {
    cost->cost_class = CostClass::kNorm;
  }
}

// By a ring, which sends the least that a collective of equal ranks can:
// Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009.
double Sent(const Step& collective, int world_size) {
  double bytes = 0;
  for (const Slice& slice : collective.outputs) {
    bytes += static_cast<double>(slice.bytes);
  }
  const double others = static_cast<double>(world_size - 1) / world_size;
  return (collective.kind == Step::Kind::kAllReduce ? 2 : 1) * others * bytes;
}

bool Same(const Slice& a, const Slice& b) {
  return a.arena == b.arena && a.offset == b.offset && a.bytes == b.bytes;
}

// What is read twice by one kernel stays in its caches.
double BytesOf(const Step& step) {
  double bytes = 0;
  for (auto slice = step.inputs.begin(); slice != step.inputs.end(); ++slice) {
    const bool known =
        std::any_of(step.inputs.begin(), slice,
                    [&](const Slice& other) { return Same(*slice, other); });
    if (!known) bytes += static_cast<double>(slice->bytes);
  }
  for (const Slice& slice : step.outputs) {
    bytes += static_cast<double>(slice.bytes);
  }
  return bytes;
}

StepCost CostOf(const Plan& plan, const Step& step) {
  StepCost cost;
  // A sum over one rank is there already.
  if (IsCollective(step) && plan.world_size == 1) {
    cost.launches = 0;
  } else {
    cost.bytes = BytesOf(step);
  }
  if (IsCollective(step)) {
    cost.cost_class = CostClass::kCollective;
    cost.sent = Sent(step, plan.world_size);
    return cost;
  }
  if (step.role != Role::kForward && step.role != Role::kBackward) {
    cost.cost_class = CostClass::kUpdate;
    return cost;
  }
  if (step.kind != Step::Kind::kKernel) return cost;
  const Op& op = step.block->op(step.op);
  // What backward makes again is work of the forward part.
  const Role role =
      op.decision.reason == Reason::kRecomputed ? Role::kForward : step.role;
  cost.cost_class = op.body == nullptr ? ClassOf(*step.block, op, role)
                                       : CostClass::kElementwise;
  AddOp(*step.block, op, plan.symbols, role, &cost);
  return cost;
}

}  // namespace

absl::string_view Name(CostClass cost_class) {
  constexpr std::array<absl::string_view, kCostClasses> kNames = {
      "conv forward",
      "dgrad",
      "wgrad",
      "norm",
      "element-wise",
      "cast",
      "exposed collective",
      "update",
      "input wait",
      "idle"};
  return kNames[static_cast<int>(cost_class)];
}

bool IsCollective(const Step& step) { return IsCollective(step.kind); }

std::vector<StepCost> CostsOf(const Plan& plan) {
  std::vector<StepCost> costs;
  costs.reserve(plan.steps.size());
  for (const Step& step : plan.steps) costs.push_back(CostOf(plan, step));
  return costs;
}

double Over(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

double MostFlops(const DeviceRates& device, bool low) {
  return low ? std::max(device.low, device.f32) : device.f32;
}

double LeastSeconds(const StepCost& cost, const DeviceRates& device) {
  return std::max({Over(cost.bytes, device.memory),
                   Over(cost.sent, device.link),
                   Over(cost.flops, MostFlops(device, cost.low))});
}

}  // namespace runtime
}  // namespace halftone
