// Element-wise arithmetic, activations, casts and sums.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"

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

// ---- Unary ops.

OpSchema UnarySchema(absl::string_view name, absl::string_view doc,
                     AmpClass amp) {
  OpSchema schema(name);
  schema.Doc(doc)
      .TypeVar("T", kFloatTypes)
      .In("X", "T", "any dims")
      .Out("Out", "T", "dims of X")
      .Infer(SameDims({"X"}, "Out"))
      .Amp(amp)
      .Layout(LayoutRule::kAny)
      .ElementWise();
  return schema;
}

OpSchema UnaryGradSchema(absl::string_view of, absl::string_view formula,
                         absl::string_view forward_slot) {
  OpSchema schema(absl::StrCat(of, "_grad"));
  schema.Doc(absl::StrCat("The gradient of ", of, ": XGrad = ", formula, "."))
      .TypeVar("T", kFloatTypes)
      .In(forward_slot, "T", absl::StrCat("of ", of))
      .In("OutGrad", "T", "the same dims")
      .Out("XGrad", "T", "the same dims")
      .Infer(SameDims({std::string(forward_slot), "OutGrad"}, "XGrad"))
      .NoGrad()
      .Internal()
      .Amp(AmpClass::kGray)
      .Layout(LayoutRule::kAny)
      .ElementWise();
  return schema;
}

// XGrad = factor * (OutGrad `type` value).
absl::Status SetScaled(GradContext& g, absl::string_view type, ValueId value,
                       double factor) {
  OpBuilder product = g.Emit(type);
  product.In("X", g.OutGrad("Out")).In("Y", value);
  if (factor == 1.0) return g.SetGrad("X", std::move(product));
  HT_ASSIGN_OR_RETURN(const ValueId unscaled,
                      BuildValue(g, std::move(product)));
  return g.SetGrad("X",
                   g.Emit("scale").In("X", unscaled).Attr("scale", factor));
}

absl::Status GradExp(GradContext& g) {
  return SetScaled(g, "elementwise_mul", g.Output("Out"), 1.0);
}
absl::Status GradLog(GradContext& g) {
  return SetScaled(g, "elementwise_div", g.Input("X"), 1.0);
}
absl::Status GradSquare(GradContext& g) {
  return SetScaled(g, "elementwise_mul", g.Input("X"), 2.0);
}
absl::Status GradSqrt(GradContext& g) {
  return SetScaled(g, "elementwise_div", g.Output("Out"), 0.5);
}
// -OutGrad * Out / (2 X): Out to the third power would leave f16's range.
absl::Status GradRsqrt(GradContext& g) {
  HT_ASSIGN_OR_RETURN(
      const ValueId product,
      Binary(g, "elementwise_mul", g.OutGrad("Out"), g.Output("Out"), -1));
  HT_ASSIGN_OR_RETURN(const ValueId quotient,
                      Binary(g, "elementwise_div", product, g.Input("X"), -1));
  return g.SetGrad("X", g.Emit("scale").In("X", quotient).Attr("scale", -0.5));
}

OpSchema& AddGeluAttr(OpSchema& schema) {
  return schema.Attr("approximate", "none",
                     "none: Phi is the normal distribution's function; tanh: "
                     "Phi(X) = (1 + tanh(sqrt(2 / pi) * (X + 0.044715 X^3))) "
                     "/ 2");
}

// SameDims({..}, out) and a known word.
ops::InferFunction InferGelu(std::vector<std::string> in, std::string out) {
  return [same = SameDims(std::move(in), std::move(out))](InferContext& c) {
    HT_RETURN_IF_ERROR(ExpectWord(c, "approximate", {"none", "tanh"}));
    return same(c);
  };
}

absl::Status GradGelu(GradContext& g) {
  return g.SetGrad("X", g.Emit("gelu_grad")
                            .AttrsOf(g.op())
                            .In("X", g.Input("X"))
                            .In("OutGrad", g.OutGrad("Out")));
}

void RegisterGelu(OpRegistry& registry) {
  OpSchema gelu = UnarySchema("gelu", "Out = X * Phi(X).", AmpClass::kGray);
  AddGeluAttr(gelu).Infer(InferGelu({"X"}, "Out")).Grad(GradGelu);
  registry.Add(std::move(gelu));
  OpSchema grad =
      UnaryGradSchema("gelu", "OutGrad * (Phi(X) + X * Phi'(X))", "X");
  AddGeluAttr(grad).Infer(InferGelu({"X", "OutGrad"}, "XGrad"));
  registry.Add(std::move(grad));
}

// SameDims({..}, out) and bounds in order.
ops::InferFunction InferClip(std::vector<std::string> in, std::string out) {
  return [same = SameDims(std::move(in), std::move(out))](InferContext& c) {
    if (!(c.Float("min") <= c.Float("max"))) {
      return AttrMismatch(c, "min",
                          absl::StrCat("at most max, ", c.Float("max")));
    }
    return same(c);
  };
}

absl::Status GradClip(GradContext& g) {
  return g.SetGrad("X", g.Emit("clip_grad")
                            .AttrsOf(g.op())
                            .In("X", g.Input("X"))
                            .In("OutGrad", g.OutGrad("Out")));
}

void RegisterClip(OpRegistry& registry) {
  const auto add_bounds = [](OpSchema& schema) -> OpSchema& {
    return schema.RequiredAttr("min", AttrKind::kFloat, "least value")
        .RequiredAttr("max", AttrKind::kFloat, "greatest value");
  };
  OpSchema clip =
      UnarySchema("clip", "Out = X kept within [min, max].", AmpClass::kGray);
  add_bounds(clip).Infer(InferClip({"X"}, "Out")).Grad(GradClip);
  registry.Add(std::move(clip));
  OpSchema grad =
      UnaryGradSchema("clip", "OutGrad where min < X < max, else 0", "X");
  add_bounds(grad).Infer(InferClip({"X", "OutGrad"}, "XGrad"));
  registry.Add(std::move(grad));
}

void RegisterActivations(OpRegistry& registry) {
  const AmpClass gray = AmpClass::kGray, black = AmpClass::kBlack;
  registry.Add(UnarySchema("relu", "Out = max(X, 0).", gray)
                   .Grad(UnaryGrad("relu_grad", "Out", true)));
  registry.Add(UnarySchema("tanh", "Out = tanh(X).", gray)
                   .Grad(UnaryGrad("tanh_grad", "Out", true)));
  registry.Add(UnarySchema("sigmoid", "Out = 1 / (1 + exp(-X)).", gray)
                   .Grad(UnaryGrad("sigmoid_grad", "Out", true)));
  registry.Add(UnarySchema("abs", "Out = |X|.", gray)
                   .Grad(UnaryGrad("abs_grad", "X", false)));
  registry.Add(UnarySchema("exp", "Out = exp(X).", black).Grad(GradExp));
  registry.Add(UnarySchema("log", "Out = ln(X).", black).Grad(GradLog));
  registry.Add(UnarySchema("square", "Out = X * X.", black).Grad(GradSquare));
  registry.Add(
      UnarySchema("sqrt", "Out = square root of X.", black).Grad(GradSqrt));
  registry.Add(UnarySchema("rsqrt", "Out = 1 / square root of X.", black)
                   .Grad(GradRsqrt));
  registry.Add(UnaryGradSchema("relu", "OutGrad where Out > 0, else 0", "Out"));
  registry.Add(UnaryGradSchema("tanh", "OutGrad * (1 - Out * Out)", "Out"));
  registry.Add(UnaryGradSchema("sigmoid", "OutGrad * Out * (1 - Out)", "Out"));
  registry.Add(
      UnaryGradSchema("abs", "OutGrad * sign(X), 0 where X is 0", "X"));
  RegisterGelu(registry);
  RegisterClip(registry);
}

// ---- scale, assign, cast, sum.

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
  RegisterActivations(registry);
  RegisterSimple(registry);
}

}  // namespace ops
}  // namespace halftone
