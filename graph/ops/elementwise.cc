// Element-wise arithmetic of two tensors, casts, copies, sums. Of one tensor:
// unary.cc, activation.cc.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"
#include "graph/ops/unary_schema.h"

namespace halftone {
namespace ops {
namespace {

// ---- Binary ops.

absl::Status InferBinary(InferContext& c) {
  const TensorType& x = c.Input("X");
  const TensorType& y = c.Input("Y");
  const int64_t axis = c.Int("axis");
  if (axis < -1 || axis > x.rank()) {
    return AttrMismatch(c, "axis",
                        absl::StrCat("-1 (align the last dims) or a dim of X, ",
                                     "0 to ", x.rank()));
  }
  auto out = BroadcastDims(x.dims, y.dims, axis);
  if (!out.has_value()) {
    return SlotMismatch(
        c, "Y",
        absl::StrCat("dims that are 1 or equal those of X, ", c.Print(x),
                     axis == -1 ? ", from the last backwards"
                                : absl::StrCat(", from dim ", axis, " on")),
        axis == -1 ? "set axis to the dim of X where Y's first belongs, or "
                     "reshape one of them"
                   : "axis = -1 aligns the last dims");
  }
  c.SetOutput("Out", *std::move(out));
  return absl::OkStatus();
}

int64_t AxisOf(const GradContext& g) {
  return std::get<int64_t>(g.Attr("axis"));
}

// a (type) b, with the dims of Out; `axis` as in the forward op or -1.
absl::StatusOr<ValueId> Binary(GradContext& g, absl::string_view type,
                               ValueId a, ValueId b, int64_t axis) {
  OpBuilder builder = g.Emit(type).In("X", a).In("Y", b);
  if (axis != -1) builder.Attr("axis", axis);
  return BuildValue(g, std::move(builder));
}

absl::Status SetNegated(GradContext& g, absl::string_view slot,
                        ValueId gradient, int64_t axis) {
  HT_ASSIGN_OR_RETURN(
      const ValueId negated,
      BuildValue(g, g.Emit("scale").In("X", gradient).Attr("scale", -1.0)));
  return SetSummedGrad(g, slot, negated, axis);
}

absl::Status GradAdd(GradContext& g) {
  const ValueId out_grad = g.OutGrad("Out");
  if (g.Wants("X")) {
    HT_RETURN_IF_ERROR(SetSummedGrad(g, "X", out_grad, -1));
  }
  if (!g.Wants("Y")) return absl::OkStatus();
  return SetSummedGrad(g, "Y", out_grad, AxisOf(g));
}

absl::Status GradSub(GradContext& g) {
  const ValueId out_grad = g.OutGrad("Out");
  if (g.Wants("X")) {
    HT_RETURN_IF_ERROR(SetSummedGrad(g, "X", out_grad, -1));
  }
  if (!g.Wants("Y")) return absl::OkStatus();
  return SetNegated(g, "Y", out_grad, AxisOf(g));
}

absl::Status GradMul(GradContext& g) {
  const ValueId out_grad = g.OutGrad("Out");
  if (g.Wants("X")) {
    HT_ASSIGN_OR_RETURN(const ValueId dx, Binary(g, "elementwise_mul", out_grad,
                                                 g.Input("Y"), AxisOf(g)));
    HT_RETURN_IF_ERROR(SetSummedGrad(g, "X", dx, -1));
  }
  if (!g.Wants("Y")) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(const ValueId dy,
                      Binary(g, "elementwise_mul", out_grad, g.Input("X"), -1));
  return SetSummedGrad(g, "Y", dy, AxisOf(g));
}

// dX = dOut / Y, dY = -(dOut / Y) * Out: no product of two large numbers.
absl::Status GradDiv(GradContext& g) {
  HT_ASSIGN_OR_RETURN(
      const ValueId quotient,
      Binary(g, "elementwise_div", g.OutGrad("Out"), g.Input("Y"), AxisOf(g)));
  if (g.Wants("X")) {
    HT_RETURN_IF_ERROR(SetSummedGrad(g, "X", quotient, -1));
  }
  if (!g.Wants("Y")) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(const ValueId dy, Binary(g, "elementwise_mul", quotient,
                                               g.Output("Out"), -1));
  return SetNegated(g, "Y", dy, AxisOf(g));
}

OpSchema BinarySchema(absl::string_view name, absl::string_view sign,
                      absl::Status (*grad)(GradContext&)) {
  OpSchema schema(name);
  schema
      .Doc(absl::StrCat("Out = X ", sign,
                        " Y. Dims go together if they are equal or one of "
                        "them is 1."))
      .TypeVar("T", kFloatTypes)
      .In("X", "T", "any dims")
      .In("Y", "T", "dims aligned with X's by axis")
      .Out("Out", "T", "the broadcast dims")
      .Attr("axis", int64_t{-1},
            "the dim of X with which Y's first goes; -1: the last dims go "
            "together")
      .Infer(InferBinary)
      .Grad(grad)
      .Amp(AmpClass::kGray)
      .Layout(LayoutRule::kAny)
      .ElementWise();
  return schema;
}

// ---- scale, fill_zeros_like, assign, cast, sum.

absl::Status GradScale(GradContext& g) {
  return g.SetGrad(
      "X",
      g.Emit("scale").In("X", g.OutGrad("Out")).Attr("scale", g.Attr("scale")));
}

absl::Status GradAssign(GradContext& g) {
  return g.SetGrad("X", g.Emit("assign").In("X", g.OutGrad("Out")));
}

// Only from float to float is there a gradient.
absl::Status GradCast(GradContext& g) {
  const DType from = InputDType(g, "X");
  if (!IsFloat(from) || !IsFloat(g.type(g.OutGrad("Out")).dtype)) {
    return absl::OkStatus();
  }
  return g.SetGrad("X",
                   g.Emit("cast").In("X", g.OutGrad("Out")).Attr("to", from));
}

absl::Status InferSum(InferContext& c) {
  const auto x = c.InputList("X");
  if (x.empty()) return SlotMismatch(c, "X", "one value or more");
  for (size_t i = 1; i < x.size(); ++i) {
    if (x[i].dims == x[0].dims) continue;
    return MemberMismatch(c, "X", i,
                          absl::StrCat("the dims of X[0], ", c.Print(x[0])),
                          "elementwise_add broadcasts");
  }
  c.SetOutput("Out", x[0].dims);
  c.SetOutputLayout("Out", x[0].layout);
  return absl::OkStatus();
}

absl::Status GradSum(GradContext& g) { return PassThroughGrad(g, "Out", "X"); }

void RegisterSimple(OpRegistry& registry) {
  registry.Add(UnarySchema("scale",
                           "Out = scale * X + bias, or scale * (X + bias).",
                           AmpClass::kGray)
                   .Attr("scale", 1.0, "factor")
                   .Attr("bias", 0.0, "summand")
                   .Attr("bias_after_scale", true, "false: scale * (X + bias)")
                   .Grad(GradScale));
  registry.Add(
      UnarySchema("fill_zeros_like", "Out = 0 everywhere.", AmpClass::kGray)
          .Grad(ZeroGrad));
  registry.Add(OpSchema("assign")
                   .Doc("Out = X.")
                   .TypeVar("T", kAnyTypes)
                   .In("X", "T", "any dims")
                   .Out("Out", "T", "dims of X")
                   .Infer(SameDims({"X"}, "Out"))
                   .Grad(GradAssign)
                   .Amp(AmpClass::kClear)
                   .Layout(LayoutRule::kAny)
                   .ElementWise()
                   .View());
  registry.Add(OpSchema("cast")
                   .Doc("Out = X in another dtype, rounded to nearest even.")
                   .TypeVar("TIn", kAnyTypes)
                   .TypeVar("TOut", kAnyTypes)
                   .In("X", "TIn", "any dims")
                   .Out("Out", "TOut", "dims of X")
                   .RequiredAttr("to", AttrKind::kDType, "dtype of Out")
                   .Infer(SameDims({"X"}, "Out"))
                   .Grad(GradCast)
                   .Costs(Work::kCast)
                   .Amp(AmpClass::kClear)
                   .Layout(LayoutRule::kAny)
                   .ElementWise());
  registry.Add(OpSchema("sum")
                   .Doc("Out = the sum of all X, added in f32 in their order "
                        "and rounded once.")
                   .TypeVar("T", kFloatTypes)
                   .TypeVar("TOut", kFloatTypes, "T")
                   .In("X", "T", "one or more values of the same dims", kList)
                   .Out("Out", "TOut", "dims of X")
                   .Infer(InferSum)
                   .Grad(GradSum)
                   .Amp(AmpClass::kGray)
                   .Accumulate(DType::kF32)
                   .Layout(LayoutRule::kAny)
                   .ElementWise());
}

}  // namespace

void RegisterElementwise(OpRegistry& registry) {
  registry.Add(BinarySchema("elementwise_add", "+", GradAdd));
  registry.Add(BinarySchema("elementwise_sub", "-", GradSub));
  registry.Add(BinarySchema("elementwise_mul", "*", GradMul));
  registry.Add(BinarySchema("elementwise_div", "/", GradDiv));
  RegisterSimple(registry);
}

}  // namespace ops
}  // namespace halftone
