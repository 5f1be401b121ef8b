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

// Out's gradient times the slopes, which are ops of the same operands:
// <op>_by_x and, for the second slot, <op>`by_second`.
absl::Status GradBySlopes(GradContext& g, absl::string_view second,
                          absl::string_view by_second, int64_t axis) {
  for (absl::string_view slot : {absl::string_view("X"), second}) {
    if (!g.Wants(slot)) continue;
    const bool first = slot == "X";
    HT_ASSIGN_OR_RETURN(
        const ValueId slope,
        BuildValue(g, g.Emit(absl::StrCat(g.op().schema->name(),
                                          first ? "_by_x" : by_second))
                          .AttrsOf(g.op())
                          .In("X", g.Input("X"))
                          .In(second, g.Input(second))));
    HT_ASSIGN_OR_RETURN(
        const ValueId gradient,
        Binary(g, "elementwise_mul", g.OutGrad("Out"), slope, -1));
    HT_RETURN_IF_ERROR(SetSummedGrad(g, slot, gradient, first ? -1 : axis));
  }
  return absl::OkStatus();
}

absl::Status GradBySlopesOfY(GradContext& g) {
  return GradBySlopes(g, "Y", "_by_y", AxisOf(g));
}

// Has no gradient yet.
OpSchema BinarySchema(absl::string_view name, absl::string_view formula,
                      absl::string_view whose_class = "") {
  OpSchema schema(name);
  schema
      .Doc(absl::StrCat("Out = ", formula,
                        ". Dims go together if they are equal or one of them "
                        "is 1.",
                        whose_class))
      .TypeVar("T", kFloatTypes)
      .In("X", "T", "any dims")
      .In("Y", "T", "dims aligned with X's by axis")
      .Out("Out", "T", "the broadcast dims")
      .Attr("axis", int64_t{-1},
            "the dim of X with which Y's first goes; -1: the last dims go "
            "together")
      .Infer(InferBinary)
      .Amp(AmpClass::kGray)
      .Layout(LayoutRule::kAny)
      .ElementWise();
  return schema;
}

void RegisterBinary(OpRegistry& registry) {
  registry.Add(BinarySchema("elementwise_add", "X + Y").Grad(GradAdd));
  registry.Add(BinarySchema("elementwise_sub", "X - Y").Grad(GradSub));
  registry.Add(BinarySchema("elementwise_mul", "X * Y")
                   .Lossy("X")
                   .Lossy("Y")
                   .Grad(GradMul));
  registry.Add(BinarySchema("elementwise_div", "X / Y").Grad(GradDiv));
  const auto add = [&](absl::string_view name, absl::string_view formula,
                       absl::string_view by_x, absl::string_view by_y) {
    registry.Add(
        BinarySchema(name, formula, kClassOfPaddle).Grad(GradBySlopesOfY));
    registry.Add(
        BinarySchema(absl::StrCat(name, "_by_x"), by_x).NoGrad().Internal());
    registry.Add(
        BinarySchema(absl::StrCat(name, "_by_y"), by_y).NoGrad().Internal());
  };
  add("elementwise_max", "the greater of X and Y, a NaN if one is",
      "1 where X > Y, else 0", "1 where X <= Y, else 0");
  add("elementwise_min", "the lesser of X and Y, a NaN if one is",
      "1 where X < Y, else 0", "1 where X >= Y, else 0");
  registry.AddAlias("maximum", "elementwise_max");
  registry.AddAlias("minimum", "elementwise_min");
  add("elementwise_pow", "X to the power of Y",
      "Y * X ^ (Y - 1), 0 where Y is 0",
      "X ^ Y * ln(X), 0 where X is 0 and Y at least 0");
}

// ---- prelu.

int64_t AlphaAxisOf(const std::string& mode, const TensorType& alpha) {
  return AlphaAxis(mode, alpha.rank());
}

absl::Status InferPrelu(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectWord(c, "mode", {"all", "channel", "element"}));
  const TensorType& x = c.Input("X");
  const TensorType& alpha = c.Input("Alpha");
  const std::string& mode = c.Str("mode");
  const auto out = BroadcastDims(x.dims, alpha.dims, AlphaAxisOf(mode, alpha));
  const bool one = Product(alpha.dims) == Dim(1);
  if (!out.has_value() || *out != x.dims || (mode == "all" && !one)) {
    return SlotMismatch(
        c, "Alpha",
        mode == "all" ? "one value, [1]"
        : mode == "channel"
            ? "one value per channel, dim 1 of X: [C] or [1, C, 1, 1]"
            : "the dims of X, or 1 where values are shared",
        absl::StrCat("X is ", c.Print(x)));
  }
  c.SetOutput("Out", x.dims);
  c.SetOutputLayout("Out", x.layout);
  return absl::OkStatus();
}

absl::Status GradPrelu(GradContext& g) {
  return GradBySlopes(g, "Alpha", "_by_alpha",
                      AlphaAxisOf(std::get<std::string>(g.Attr("mode")),
                                  g.type(g.Input("Alpha"))));
}

// An element needs one product.
Dim PreluFlops(const Block& block, const Op& op) {
  return Product(block.type(op.out(0)).dims);
}

OpSchema PreluSchema(absl::string_view name, absl::string_view doc) {
  OpSchema schema(name);
  schema.Doc(doc)
      .TypeVar("T", kFloatTypes)
      .In("X", "T", "any dims")
      .In("Alpha", "T", "slopes below 0, by mode")
      .Out("Out", "T", "dims of X")
      .Attr("mode", "all",
            "all: one slope, [1]; channel: one per dim 1 of X, [C] or [1, C, "
            "1, 1]; element: one per element of a sample")
      .Infer(InferPrelu)
      .Layout(LayoutRule::kAny)
      .ElementWise();
  return schema;
}

void RegisterPrelu(OpRegistry& registry) {
  registry.Add(
      PreluSchema("prelu", absl::StrCat("Out = X where X > 0, else Alpha * X.",
                                        kClassOfAutocast))
          .Amp(AmpClass::kWhite)
          .Costs(Work::kElements, PreluFlops)
          .Grad(GradPrelu));
  registry.Add(PreluSchema("prelu_by_x", "Out = 1 where X > 0, else Alpha.")
                   .Amp(AmpClass::kGray)
                   .NoGrad()
                   .Internal());
  registry.Add(PreluSchema("prelu_by_alpha", "Out = 0 where X > 0, else X.")
                   .Amp(AmpClass::kGray)
                   .NoGrad()
                   .Internal());
}

// ---- scale, fill_zeros_like, assign, share_data, cast, sum.

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

OpSchema CopySchema(absl::string_view name, absl::string_view doc) {
  return OpSchema(name)
      .Doc(doc)
      .TypeVar("T", kAnyTypes)
      .In("X", "T", "any dims")
      .Out("Out", "T", "dims of X")
      .Infer(SameDims({"X"}, "Out"))
      .Amp(AmpClass::kClear)
      .Layout(LayoutRule::kAny)
      .ElementWise()
      .View();
}

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
          .Grad(ZeroGrad)
          .MayAlias("Out", "X"));
  registry.Add(CopySchema("assign", "Out = X.").Grad(GradAssign));
  registry.Add(
      CopySchema("share_data", "Out = X, through which no gradient goes.")
          .NoGrad());
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
  RegisterBinary(registry);
  RegisterPrelu(registry);
  RegisterSimple(registry);
}

}  // namespace ops
}  // namespace halftone
