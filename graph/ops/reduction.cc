// Reductions that are no sums, where their extremes lie, norms, and running
// sums. Sums and means: loss.cc.
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"
#include "graph/ops/unary_schema.h"

namespace halftone {
namespace ops {
namespace {

const DTypeSet& Numbers() {
  static const auto* const numbers = new DTypeSet{
      DType::kF32, DType::kF16, DType::kBF16, DType::kI32, DType::kI64};
  return *numbers;
}

// ---- Ops that gradients are made of.

absl::StatusOr<ValueId> Constant(GradContext& g, double value) {
  return BuildValue(g, g.Emit("fill_constant")
                           .Attr("value", value)
                           .Attr("dtype", InputDType(g, "X")));
}
absl::StatusOr<ValueId> Two(GradContext& g, absl::string_view type, ValueId x,
                            ValueId y) {
  return BuildValue(g, g.Emit(type).In("X", x).In("Y", y));
}
absl::StatusOr<ValueId> Choose(GradContext& g, ValueId condition, ValueId x,
                               ValueId y) {
  return BuildValue(
      g, g.Emit("where").In("Condition", condition).In("X", x).In("Y", y));
}

// The axes that a reduction's gradient repeats along.
struct ReducedDims {
  std::vector<int64_t> dim;
  bool keep_dim;
};
ReducedDims ReducedBy(const GradContext& g) {
  const bool all = std::get<bool>(g.Attr("reduce_all"));
  return {all ? std::vector<int64_t>()
              : std::get<std::vector<int64_t>>(g.Attr("dim")),
          std::get<bool>(g.Attr("keep_dim"))};
}

// `value`, in the dims of X.
absl::StatusOr<ValueId> Repeated(GradContext& g, const ReducedDims& axes,
                                 ValueId value) {
  OpBuilder builder =
      g.Emit("broadcast_like").In("X", value).In("Like", g.Input("X"));
  if (!axes.dim.empty()) builder.Attr("dim", axes.dim);
  if (axes.keep_dim) builder.Attr("keep_dim", true);
  return BuildValue(g, std::move(builder));
}

// OutGrad wherever `x` is Out: all ties have it whole, as Paddle's.
absl::StatusOr<ValueId> WhereIsOut(GradContext& g, const ReducedDims& axes,
                                   ValueId x) {
  HT_ASSIGN_OR_RETURN(const ValueId out, Repeated(g, axes, g.Output("Out")));
  HT_ASSIGN_OR_RETURN(const ValueId grad, Repeated(g, axes, g.OutGrad("Out")));
  HT_ASSIGN_OR_RETURN(const ValueId is_out, Two(g, "equal", x, out));
  HT_ASSIGN_OR_RETURN(const ValueId zero, Constant(g, 0));
  return Choose(g, is_out, grad, zero);
}

// ---- reduce_max, reduce_min, reduce_prod.

absl::Status GradExtreme(GradContext& g) {
  HT_ASSIGN_OR_RETURN(const ValueId grad,
                      WhereIsOut(g, ReducedBy(g), g.Input("X")));
  g.SetGrad("X", grad);
  return absl::OkStatus();
}

// The product of the others times OutGrad. With one factor of 0 that is the
// product of the rest there and 0 elsewhere, with more of them 0.
absl::Status GradProduct(GradContext& g) {
  const ReducedDims axes = ReducedBy(g);
  const ValueId x = g.Input("X");
  HT_ASSIGN_OR_RETURN(const ValueId zero, Constant(g, 0));
  HT_ASSIGN_OR_RETURN(const ValueId one, Constant(g, 1));
  HT_ASSIGN_OR_RETURN(const ValueId is_zero, Two(g, "equal", x, zero));
  HT_ASSIGN_OR_RETURN(const ValueId zeros, Choose(g, is_zero, one, zero));
  HT_ASSIGN_OR_RETURN(const ValueId factors, Choose(g, is_zero, one, x));
  const auto reduce = [&](absl::string_view type, ValueId value) {
    OpBuilder builder = g.Emit(type).In("X", value);
    if (!axes.dim.empty()) builder.Attr("dim", axes.dim);
    if (axes.keep_dim) builder.Attr("keep_dim", true);
    return BuildValue(g, std::move(builder));
  };
  HT_ASSIGN_OR_RETURN(ValueId product, reduce("reduce_prod", factors));
  HT_ASSIGN_OR_RETURN(product,
                      Two(g, "elementwise_mul", product, g.OutGrad("Out")));
  HT_ASSIGN_OR_RETURN(product, Repeated(g, axes, product));
  HT_ASSIGN_OR_RETURN(const ValueId others,
                      Two(g, "elementwise_div", product, factors));
  HT_ASSIGN_OR_RETURN(ValueId count, reduce("reduce_sum", zeros));
  HT_ASSIGN_OR_RETURN(count, Repeated(g, axes, count));
  HT_ASSIGN_OR_RETURN(const ValueId none_else, Two(g, "equal", count, zeros));
  HT_ASSIGN_OR_RETURN(const ValueId grad, Choose(g, none_else, others, zero));
  g.SetGrad("X", grad);
  return absl::OkStatus();
}

void RegisterFolds(OpRegistry& registry) {
  const auto add = [&](absl::string_view name, absl::string_view doc) {
    OpSchema schema(name);
    schema.Doc(doc)
        .TypeVar("T", Numbers())
        .In("X", "T", "any dims")
        .Out("Out", "T", "dims of X without the reduced ones")
        .Attr("dim", std::vector<int64_t>(), "axes that are reduced; []: all")
        .Attr("keep_dim", false, "reduced axes stay, with dim 1")
        .Attr("reduce_all", false, "reduce all axes, whatever dim says")
        .Infer(InferReduce)
        .Amp(AmpClass::kBlack);
    return schema;
  };
  const absl::string_view black = " The class is that of all reductions.";
  registry.Add(add("reduce_max",
                   absl::StrCat("Out = the greatest of X over axes, a NaN if "
                                "there is one. All ties have the gradient.",
                                black))
                   .Grad(GradExtreme));
  registry.Add(add("reduce_min",
                   absl::StrCat("Out = the least of X over axes, a NaN if "
                                "there is one. All ties have the gradient.",
                                black))
                   .Grad(GradExtreme));
  registry.Add(add("reduce_prod",
                   absl::StrCat("Out = products of X over axes, multiplied in "
                                "f32; 1 over none.",
                                kClassOfPaddle))
                   .Accumulate(DType::kF32)
                   .Grad(GradProduct));
}

// ---- arg_max, arg_min.

absl::Status InferArg(InferContext& c) {
  const Dims& x = c.Input("X").dims;
  const bool keep = c.Bool("keepdims");
  std::vector<bool> reduced(x.size(), true);
  if (!c.Bool("flatten")) {
    HT_ASSIGN_OR_RETURN(const int axis, Axis(c, "axis", x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      reduced[i] = static_cast<int>(i) == axis;
    }
  }
  for (size_t i = 0; i < x.size(); ++i) {
    if (reduced[i] && x[i] == Dim(0)) {
      return SlotMismatch(c, "X", "elements along the axis",
                          "of nothing there is no extreme");
    }
  }
  c.SetOutput("Out", ReduceDims(x, reduced, keep));
  return absl::OkStatus();
}

void RegisterArgs(OpRegistry& registry) {
  for (const bool most : {true, false}) {
    registry.Add(
        OpSchema(most ? "arg_max" : "arg_min")
            .Doc(absl::StrCat("Out = where the ", most ? "greatest" : "least",
                              " of X lies along axis: of equal ones the first, "
                              "of NaNs, which go before all, too.",
                              kClassOfAutocast))
            .TypeVar("T", Numbers())
            .TypeVar("TOut", {DType::kI64, DType::kI32})
            .In("X", "T", "any dims")
            .Out("Out", "TOut", "dims of X without axis")
            .Attr("axis", int64_t{-1}, "along which is looked")
            .Attr("keepdims", false, "the axis stays, with dim 1")
            .Attr("flatten", false, "over all elements, in row-major order")
            .Attr("dtype", DType::kI64,
                  "dtype of Out, i64 or i32; Paddle's numbers are known")
            .Infer(InferArg)
            .NoGrad()
            .Amp(AmpClass::kGray));
  }
}

// ---- p_norm.

absl::Status InferNorm(InferContext& c) {
  const Dims& x = c.Input("X").dims;
  const bool keep = c.Bool("keepdim");
  if (std::isnan(c.Float("porder"))) {
    return AttrMismatch(c, "porder", "a number");
  }
  std::vector<bool> reduced(x.size(), true);
  if (!c.Bool("asvector")) {
    HT_ASSIGN_OR_RETURN(const int axis, Axis(c, "axis", x.size()));
    reduced.assign(x.size(), false);
    reduced[axis] = true;
  }
  c.SetOutput("Out", ReduceDims(x, reduced, keep));
  return absl::OkStatus();
}

// |X| ^ (p - 1), with the sign of X.
absl::StatusOr<ValueId> SignedPower(GradContext& g, double p) {
  const ValueId x = g.Input("X");
  if (p == 2) return x;
  HT_ASSIGN_OR_RETURN(const ValueId sign,
                      BuildValue(g, g.Emit("sign").In("X", x)));
  if (p == 1 || std::isinf(p)) return sign;
  HT_ASSIGN_OR_RETURN(ValueId power, BuildValue(g, g.Emit("abs").In("X", x)));
  HT_ASSIGN_OR_RETURN(
      power, BuildValue(g, g.Emit("pow").In("X", power).Attr("factor", p - 1)));
  return Two(g, "elementwise_mul", sign, power);
}

// sign(X) |X| ^ (p - 1) * OutGrad / (Out ^ (p - 1) + epsilon); of the greatest
// and the least OutGrad where they are, with X's sign.
absl::Status GradNorm(GradContext& g) {
  const double p = std::get<double>(g.Attr("porder"));
  if (p == 0)
    return g.SetGrad("X", g.Emit("fill_zeros_like").In("X", g.Input("X")));
  ReducedDims axes{{}, std::get<bool>(g.Attr("keepdim"))};
  if (!std::get<bool>(g.Attr("asvector"))) {
    axes.dim = {std::get<int64_t>(g.Attr("axis"))};
  }
  HT_ASSIGN_OR_RETURN(const ValueId direction, SignedPower(g, p));
  ValueId share;
  if (std::isinf(p)) {
    HT_ASSIGN_OR_RETURN(const ValueId size,
                        BuildValue(g, g.Emit("abs").In("X", g.Input("X"))));
    HT_ASSIGN_OR_RETURN(share, WhereIsOut(g, axes, size));
  } else {
    share = g.OutGrad("Out");
    if (p != 1) {
      HT_ASSIGN_OR_RETURN(
          ValueId power,
          BuildValue(
              g, g.Emit("pow").In("X", g.Output("Out")).Attr("factor", p - 1)));
      HT_ASSIGN_OR_RETURN(
          power,
          BuildValue(
              g,
              g.Emit("scale").In("X", power).Attr("bias", g.Attr("epsilon"))));
      HT_ASSIGN_OR_RETURN(share, Two(g, "elementwise_div", share, power));
    }
    HT_ASSIGN_OR_RETURN(share, Repeated(g, axes, share));
  }
  return g.SetGrad("X",
                   g.Emit("elementwise_mul").In("X", direction).In("Y", share));
}

void RegisterPNorm(OpRegistry& registry) {
  registry.Add(
      OpSchema("p_norm")
          .Doc(absl::StrCat(
              "Out = (sum of |X| ^ porder along axis) ^ (1 / porder), added in "
              "f32; of inf the greatest |X|, of -inf the least, of 0 how many "
              "are not 0.",
              kClassOfPaddle))
          .TypeVar("T", kFloatTypes)
          .In("X", "T", "any dims")
          .Out("Out", "T", "dims of X without axis")
          .Attr("porder", 2.0, "the exponent; inf and -inf too")
          .Attr("axis", int64_t{-1}, "along which is added")
          .Attr("epsilon", 1e-12, "in the gradient, beside Out ^ (porder - 1)")
          .Attr("keepdim", false, "the axis stays, with dim 1")
          .Attr("asvector", false, "over all elements, whatever axis says")
          .Infer(InferNorm)
          .Grad(GradNorm)
          .Amp(AmpClass::kBlack)
          .Accumulate(DType::kF32));
}

// ---- cumsum.

absl::Status InferScan(InferContext& c) {
  const Dims& x = c.Input("X").dims;
  if (c.Bool("flatten")) {
    c.SetOutput("Out", {Product(x)});
    return absl::OkStatus();
  }
  HT_RETURN_IF_ERROR(Axis(c, "axis", x.size()).status());
  c.SetOutput("Out", x);
  return absl::OkStatus();
}

// The running sum of OutGrad from the other end.
absl::Status GradScan(GradContext& g) {
  OpBuilder builder = g.Emit("cumsum")
                          .AttrsOf(g.op())
                          .In("X", g.OutGrad("Out"))
                          .Attr("reverse", !std::get<bool>(g.Attr("reverse")));
  if (!std::get<bool>(g.Attr("flatten"))) {
    return g.SetGrad("X", std::move(builder));
  }
  HT_ASSIGN_OR_RETURN(const ValueId flat, BuildValue(g, std::move(builder)));
  return g.SetGrad(
      "X", g.Emit("reshape_like").In("X", flat).In("Like", g.Input("X")));
}

void RegisterScan(OpRegistry& registry) {
  registry.Add(
      OpSchema("cumsum")
          .Doc(absl::StrCat("Out = the sum of X up to each element along axis, "
                            "added in f32 (integers in their own type).",
                            kClassOfPaddle))
          .TypeVar("T", Numbers())
          .In("X", "T", "any dims")
          .Out("Out", "T", "dims of X; with flatten one dim")
          .Attr("axis", int64_t{-1}, "along which is added")
          .Attr("flatten", false, "over all elements, in row-major order")
          .Attr("exclusive", false, "without the element itself")
          .Attr("reverse", false, "from the end")
          .Infer(InferScan)
          .Grad(GradScan)
          .Amp(AmpClass::kBlack)
          .Accumulate(DType::kF32));
}

}  // namespace

void RegisterReduction(OpRegistry& registry) {
  RegisterFolds(registry);
  RegisterArgs(registry);
  RegisterPNorm(registry);
  RegisterScan(registry);
}

}  // namespace ops
}  // namespace halftone
