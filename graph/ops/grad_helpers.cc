#include "graph/ops/grad_helpers.h"

#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/ops/infer_helpers.h"

namespace halftone {
namespace ops {

DType InputDType(const GradContext& g, absl::string_view slot, int i) {
  return g.type(g.Input(slot, i)).dtype;
}

absl::StatusOr<ValueId> BuildValue(GradContext& g, OpBuilder& builder) {
  HT_ASSIGN_OR_RETURN(const OpId op, builder.Build());
  return g.block().op(op).outputs.all()[0];
}

absl::StatusOr<ValueId> CastTo(GradContext& g, ValueId value, DType dtype) {
  if (g.type(value).dtype == dtype) return value;
  return BuildValue(g, g.Emit("cast").In("X", value).Attr("to", dtype));
}

absl::Status PassThroughGrad(GradContext& g, absl::string_view output,
                             absl::string_view input) {
  for (int i = 0; i < g.InputCount(input); ++i) {
    if (!g.Wants(input, i)) continue;
    HT_ASSIGN_OR_RETURN(const ValueId gradient,
                        CastTo(g, g.OutGrad(output), InputDType(g, input, i)));
    g.SetGrad(input, gradient, i);
  }
  return absl::OkStatus();
}

absl::Status SetSummedGrad(GradContext& g, absl::string_view slot,
                           ValueId gradient, int64_t axis) {
  const TensorType& target = g.type(g.Input(slot));
  const Dims& from = g.type(gradient).dims;
  if (target.dims == from) {
    g.SetGrad(slot, gradient);
    return absl::OkStatus();
  }
  const auto aligned = AlignDims(target.dims, from.size(), axis);
  HT_CHECK(aligned.has_value(), "the operand was broadcast");
  std::vector<int64_t> repeated;
  for (size_t i = 0; i < from.size(); ++i) {
    if ((*aligned)[i] != from[i]) repeated.push_back(i);
  }
  if (!repeated.empty()) {
    const bool keep_dim = *aligned == target.dims;
    OpBuilder sum = g.Emit("reduce_sum").In("X", gradient);
    sum.Attr("dim", repeated);
    if (keep_dim) sum.Attr("keep_dim", true);
    std::vector<bool> reduced(from.size(), false);
    for (const int64_t i : repeated) reduced[i] = true;
    if (ReduceDims(from, reduced, keep_dim) == target.dims) {
      return g.SetGrad(slot, std::move(sum));
    }
    HT_ASSIGN_OR_RETURN(gradient, BuildValue(g, std::move(sum)));
  }
  return g.SetGrad(
      slot, g.Emit("reshape_like").In("X", gradient).In("Like", g.Input(slot)));
}

std::function<absl::Status(GradContext&)> UnaryGrad(std::string type,
                                                    std::string forward_slot,
                                                    bool of_output) {
  return [type, forward_slot, of_output](GradContext& g) {
    return g.SetGrad(
        "X", g.Emit(type)
                 .AttrsOf(g.op())
                 .In(forward_slot,
                     of_output ? g.Output(forward_slot) : g.Input(forward_slot))
                 .In("OutGrad", g.OutGrad("Out")));
  };
}

absl::Status ZeroGrad(GradContext& g) {
  return g.SetGrad("X", g.Emit("fill_zeros_like").In("X", g.OutGrad("Out")));
}

}  // namespace ops
}  // namespace halftone
