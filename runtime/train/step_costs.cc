#include "runtime/train/step_costs.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "graph/schema/op_schema.h"
#include "kernels/bound_op.h"

namespace halftone {
namespace runtime {
namespace {

enum class Kind : uint8_t { kConv, kConvGradInput, kConvGradFilter, kMatmul };

struct HeavyOp {
  absl::string_view type;
  Kind kind;
};
constexpr HeavyOp kHeavyOps[] = {
    {"conv2d", Kind::kConv},
    {"depthwise_conv2d", Kind::kConv},
    {"conv2d_grad_input", Kind::kConvGradInput},
    {"conv2d_grad_filter", Kind::kConvGradFilter},
    {"matmul", Kind::kMatmul},
    {"mul", Kind::kMatmul},
};

const HeavyOp* FindHeavy(const Op& op) {
  for (const HeavyOp& heavy : kHeavyOps) {
    if (heavy.type == op.schema->name()) return &heavy;
  }
  return nullptr;
}

bool IsNorm(absl::string_view type) {
  constexpr absl::string_view kPrefixes[] = {
      "batch_norm", "sync_batch_norm", "bn_", "channel_stats", "scale_bias"};
  return std::any_of(
      std::begin(kPrefixes), std::end(kPrefixes),
      [type](absl::string_view p) { return absl::StartsWith(type, p); });
}

// Whether no dim of its first output depends on the number of samples.
bool MakesConstantShape(const kernels::BoundOp& op) {
  const Dims& dims = op.block().type(op.op().outputs.all()[0]).dims;
  return std::all_of(dims.begin(), dims.end(),
                     [](const Dim& dim) { return dim.is_constant(); });
}

// Multiplications and additions of an output element's worth of the filter.
double PerOutput(const kernels::TensorDesc& filter) {
  return 2.0 * static_cast<double>(filter.elements()) /
         static_cast<double>(std::max<int64_t>(filter.dims[0], 1));
}

double Flops(Kind kind, const kernels::BoundOp& op) {
  const kernels::TensorDesc& out = op.outputs()[0];
  switch (kind) {
    case Kind::kConv:
      return static_cast<double>(out.elements()) *
             PerOutput(op.Input("Filter"));
    case Kind::kConvGradInput:
      return static_cast<double>(op.Input("OutputGrad").elements()) *
             PerOutput(op.Input("Filter"));
    case Kind::kConvGradFilter:
      return static_cast<double>(op.Input("OutputGrad").elements()) *
             PerOutput(out);
    case Kind::kMatmul: {
      // Y is [K,N], or [N,K] where it is transposed, or [K].
      const kernels::TensorDesc& y = op.Input("Y");
      const bool transposed =
          op.schema().FindAttr("trans_y") >= 0 && op.Bool("trans_y");
      const int k = y.rank() < 2 ? 0 : y.rank() - (transposed ? 1 : 2);
      return 2.0 * static_cast<double>(out.elements() * y.dims[k]);
    }
  }
  return 0;
}

CostClass ClassOf(Kind kind, const kernels::BoundOp& op, Role role) {
  if (kind == Kind::kConvGradInput) return CostClass::kDataGrad;
  if (kind == Kind::kConvGradFilter) return CostClass::kWeightGrad;
  if (role == Role::kForward) return CostClass::kForward;
  return MakesConstantShape(op) ? CostClass::kWeightGrad : CostClass::kDataGrad;
}

// Adds what an op costs, or the ops of its body.
void AddOp(const Block& block, const Op& op, const SymbolValues& symbols,
           Role role, StepCost* cost) {
  if (op.body != nullptr) {
    for (OpId id : op.body->ops()) {
      AddOp(*op.body, op.body->op(id), symbols, role, cost);
    }
    return;
  }
  if (const HeavyOp* heavy = FindHeavy(op)) {
    const kernels::BoundOp bound(block, op, symbols, {});
    cost->flops += Flops(heavy->kind, bound);
    cost->cost_class = ClassOf(heavy->kind, bound, role);
    cost->low = IsLow(bound.inputs()[0].dtype);
  } else if (cost->flops == 0 && IsNorm(op.schema->name())) {
    cost->cost_class = CostClass::kNorm;
  }
}

StepCost CostOf(const Plan& plan, const Step& step) {
  StepCost cost;
  for (const auto* slices : {&step.inputs, &step.outputs}) {
    for (const Slice& slice : *slices) {
      cost.bytes += static_cast<double>(slice.bytes);
    }
  }
  if (step.kind == Step::Kind::kAllReduce ||
      step.kind == Step::Kind::kBroadcast ||
      step.kind == Step::Kind::kAllGather) {
    cost.cost_class = CostClass::kCollective;
    return cost;
  }
  if (step.role != Role::kForward && step.role != Role::kBackward) {
    cost.cost_class = CostClass::kUpdate;
    return cost;
  }
  if (step.kind != Step::Kind::kKernel) return cost;
  const Op& op = step.block->op(step.op);
  if (op.schema->name() == "cast") cost.cost_class = CostClass::kCast;
  AddOp(*step.block, op, plan.symbols, step.role, &cost);
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

std::vector<StepCost> CostsOf(const Plan& plan) {
  std::vector<StepCost> costs;
  costs.reserve(plan.steps.size());
  for (const Step& step : plan.steps) costs.push_back(CostOf(plan, step));
  return costs;
}

double Roofline::SecondsOf(const StepCost& cost) const {
  if (!known()) return 0;
  return std::max(cost.bytes / bytes,
                  cost.flops / (cost.low ? low_flops : f32_flops));
}

Roofline RooflineOf(absl::string_view description) {
  struct Device {
    absl::string_view name;
    Roofline roofline;
  };
  // NVIDIA's datasheets of the SXM parts: memory, dense tensor cores, FP32
  // without them.
  constexpr Device kDevices[] = {
      {"H200", {4.8e12, 989e12, 67e12}},
      {"H100", {3.35e12, 989e12, 67e12}},
      {"A100-SXM4-80GB", {2.039e12, 312e12, 19.5e12}},
      {"A100", {1.555e12, 312e12, 19.5e12}},
  };
  for (const Device& device : kDevices) {
    if (absl::StrContains(description, device.name)) return device.roofline;
  }
  return Roofline();
}

}  // namespace runtime
}  // namespace halftone
