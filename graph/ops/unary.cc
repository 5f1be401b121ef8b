// Elementary functions of one tensor, element by element. Activations:
// activation.cc.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"
#include "graph/ops/unary_schema.h"

namespace halftone {
namespace ops {
namespace {

// OutGrad `type` value.
OpBuilder WithOutGrad(GradContext& g, absl::string_view type, ValueId value) {
  return std::move(g.Emit(type).In("X", g.OutGrad("Out")).In("Y", value));
}

// XGrad = factor * (OutGrad `type` value).
absl::Status SetScaled(GradContext& g, absl::string_view type, ValueId value,
                       double factor) {
  OpBuilder product = WithOutGrad(g, type, value);
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
      BuildValue(g, WithOutGrad(g, "elementwise_mul", g.Output("Out"))));
  HT_ASSIGN_OR_RETURN(
      const ValueId quotient,
      BuildValue(
          g, g.Emit("elementwise_div").In("X", product).In("Y", g.Input("X"))));
  return g.SetGrad("X", g.Emit("scale").In("X", quotient).Attr("scale", -0.5));
}
absl::Status GradNeg(GradContext& g) {
  return g.SetGrad("X", g.Emit("neg").In("X", g.OutGrad("Out")));
}
absl::Status GradSin(GradContext& g) {
  HT_ASSIGN_OR_RETURN(const ValueId cosine,
                      BuildValue(g, g.Emit("cos").In("X", g.Input("X"))));
  return SetScaled(g, "elementwise_mul", cosine, 1.0);
}
absl::Status GradCos(GradContext& g) {
  HT_ASSIGN_OR_RETURN(const ValueId sine,
                      BuildValue(g, g.Emit("sin").In("X", g.Input("X"))));
  return SetScaled(g, "elementwise_mul", sine, -1.0);
}

// factor * X^(factor - 1) * OutGrad.
absl::Status GradPow(GradContext& g) {
  const double factor = std::get<double>(g.Attr("factor"));
  if (factor == 0.0) return ZeroGrad(g);
  if (factor == 1.0) {
    g.SetGrad("X", g.OutGrad("Out"));
    return absl::OkStatus();
  }
  if (factor == 2.0) return GradSquare(g);
  HT_ASSIGN_OR_RETURN(
      const ValueId power,
      BuildValue(
          g, g.Emit("pow").In("X", g.Input("X")).Attr("factor", factor - 1.0)));
  return SetScaled(g, "elementwise_mul", power, factor);
}

absl::Status InferRound(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectWord(c, "ties", {"away", "even"}));
  return SameDims({"X"}, "Out")(c);
}

// Black in Paddle's lists: where small steps of X are large ones of Out.
void RegisterBlack(OpRegistry& registry) {
  const AmpClass black = AmpClass::kBlack;
  registry.Add(UnarySchema("exp", "Out = exp(X).", black).Grad(GradExp));
  registry.Add(UnarySchema("log", "Out = ln(X).", black).Grad(GradLog));
  registry.Add(UnarySchema("square", "Out = X * X.", black).Grad(GradSquare));
  registry.Add(
      UnarySchema("sqrt", "Out = square root of X.", black).Grad(GradSqrt));
  registry.Add(UnarySchema("rsqrt", "Out = 1 / square root of X.", black)
                   .Grad(GradRsqrt));
  registry.Add(UnarySchema("reciprocal",
                           absl::StrCat("Out = 1 / X.", kClassOfPaddle), black)
                   .Grad(UnaryGrad("reciprocal_grad", "Out", true)));
  registry.Add(UnaryGradSchema("reciprocal", "-OutGrad * Out * Out", "Out"));
  registry.Add(
      UnarySchema("pow",
                  absl::StrCat("Out = X to the power of factor; a NaN where X "
                               "is negative and factor no whole number.",
                               kClassOfPaddle),
                  black)
          .Attr("factor", 1.0, "exponent")
          .Grad(GradPow));
}

void RegisterSteps(OpRegistry& registry) {
  const AmpClass gray = AmpClass::kGray;
  const auto doc = [](absl::string_view what, absl::string_view whose) {
    return absl::StrCat("Out = ", what, " Its gradient is 0.", whose);
  };
  registry.Add(UnarySchema("floor",
                           doc("the greatest whole number that is at most X.",
                               kClassOfAutocast),
                           gray)
                   .Grad(ZeroGrad));
  registry.Add(UnarySchema("ceil",
                           doc("the least whole number that is at least X.",
                               kClassOfAutocast),
                           gray)
                   .Grad(ZeroGrad));
  registry.Add(
      UnarySchema("round",
                  doc("the whole number nearest to X.", kClassOfAutocast), gray)
          .Attr("ties", "away",
                "halves go: away from zero, as Paddle's; even, to the even "
                "neighbour, as PyTorch's and ONNX's")
          .Infer(InferRound)
          .Grad(ZeroGrad));
  registry.Add(UnarySchema("sign", doc("-1, 0 or 1.", kClassOfPaddle), gray)
                   .Grad(ZeroGrad));
}

void RegisterGray(OpRegistry& registry) {
  const AmpClass gray = AmpClass::kGray;
  const auto doc = [](absl::string_view what) {
    return absl::StrCat(what, kClassOfAutocast);
  };
  registry.Add(UnarySchema("abs", "Out = |X|.", gray)
                   .Grad(UnaryGrad("abs_grad", "X", false)));
  registry.Add(
      UnaryGradSchema("abs", "OutGrad * sign(X), 0 where X is 0", "X"));
  registry.Add(UnarySchema("neg", doc("Out = -X."), gray).Grad(GradNeg));
  registry.Add(UnarySchema("sin", doc("Out = sine of X, in radians."), gray)
                   .Grad(GradSin));
  registry.Add(UnarySchema("cos", doc("Out = cosine of X, in radians."), gray)
                   .Grad(GradCos));
  registry.Add(
      UnarySchema("atan", doc("Out = arctangent of X, in radians."), gray)
          .Grad(UnaryGrad("atan_grad", "X", false)));
  registry.Add(UnaryGradSchema("atan", "OutGrad / (1 + X * X)", "X"));
  registry.Add(UnarySchema("erf",
                           doc("Out = the error function of X: 2 / sqrt(pi) "
                               "times the integral of exp(-t * t) from 0 to "
                               "X."),
                           gray)
                   .Grad(UnaryGrad("erf_grad", "X", false)));
  registry.Add(
      UnaryGradSchema("erf", "OutGrad * 2 / sqrt(pi) * exp(-X * X)", "X"));
}

}  // namespace

void RegisterUnary(OpRegistry& registry) {
  RegisterBlack(registry);
  RegisterSteps(registry);
  RegisterGray(registry);
}

}  // namespace ops
}  // namespace halftone
