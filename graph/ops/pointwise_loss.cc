// Losses of single elements and of labels: no sums but those that they are
// divided by.
#include <cstdint>
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

// ---- Element by element, of two values of the same dims.

// A loss of a prediction and a target, with the slots that Paddle gives them.
struct Pair {
  const char *name, *prediction, *target, *out;
};
constexpr Pair kSquareError = {"square_error_cost", "X", "Y", "Out"};
constexpr Pair kHuber = {"huber_loss", "X", "Y", "Out"};
constexpr Pair kBce = {"bce_loss", "X", "Label", "Out"};
constexpr Pair kKldiv = {"kldiv_loss", "X", "Target", "Loss"};
constexpr Pair kLogLoss = {"log_loss", "Predicted", "Labels", "Loss"};

// out = formula; or its slope along the prediction, `name`_by_x.
OpSchema PairSchema(const Pair& pair, absl::string_view suffix,
                    absl::string_view formula,
                    absl::string_view whose_class = "") {
  OpSchema schema(absl::StrCat(pair.name, suffix));
  schema.Doc(absl::StrCat(pair.out, " = ", formula, ".", whose_class))
      .TypeVar("T", kFloatTypes)
      .In(pair.prediction, "T", "any dims")
      .In(pair.target, "T", absl::StrCat("dims of ", pair.prediction))
      .Out(pair.out, "T", absl::StrCat("dims of ", pair.prediction))
      .Infer(SameDims({pair.prediction, pair.target}, pair.out))
      .Amp(AmpClass::kBlack)
      .Layout(LayoutRule::kAny)
      .ElementWise();
  return schema;
}

// The prediction's gradient: that of the loss times the slope. Targets have
// one where the loss is one of their difference.
absl::Status GradPair(GradContext& g, const Pair& pair, bool of_difference) {
  HT_ASSIGN_OR_RETURN(
      const ValueId slope,
      BuildValue(g, g.Emit(absl::StrCat(pair.name, "_by_x"))
                        .AttrsOf(g.op())
                        .In(pair.prediction, g.Input(pair.prediction))
                        .In(pair.target, g.Input(pair.target))));
  OpBuilder product =
      g.Emit("elementwise_mul").In("X", g.OutGrad(pair.out)).In("Y", slope);
  if (!of_difference || !g.Wants(pair.target)) {
    return g.Wants(pair.prediction)
               ? g.SetGrad(pair.prediction, std::move(product))
               : absl::OkStatus();
  }
  HT_ASSIGN_OR_RETURN(const ValueId gradient,
                      BuildValue(g, std::move(product)));
  if (g.Wants(pair.prediction)) g.SetGrad(pair.prediction, gradient);
  return g.SetGrad(pair.target,
                   g.Emit("scale").In("X", gradient).Attr("scale", -1.0));
}

void RegisterPairOf(OpRegistry& registry, const Pair& pair, OpSchema schema,
                    OpSchema slope, bool of_difference = false) {
  registry.Add(std::move(schema.Grad([pair, of_difference](GradContext& g) {
    return GradPair(g, pair, of_difference);
  })));
  registry.Add(std::move(slope.NoGrad().Internal()));
}

absl::Status InferKldiv(InferContext& c) {
  if (c.Str("reduction") != "none") {
    return AttrMismatch(c, "reduction", "none", "reduce Loss by an op");
  }
  return SameDims({"X", "Target"}, "Loss")(c);
}

void RegisterPairs(OpRegistry& registry) {
  RegisterPairOf(registry, kSquareError,
                 PairSchema(kSquareError, "", "(X - Y)^2",
                            " FP32 as square, of which Paddle makes it."),
                 PairSchema(kSquareError, "_by_x", "2 * (X - Y)"),
                 /*of_difference=*/true);
  OpSchema huber = PairSchema(
      kHuber, "",
      "(Y - X)^2 / 2 where |Y - X| is at most delta, else delta * (|Y - X| - "
      "delta / 2)",
      kClassOfPaddle);
  OpSchema huber_slope =
      PairSchema(kHuber, "_by_x", "X - Y, at least -delta and at most delta");
  for (OpSchema* one : {&huber, &huber_slope}) {
    one->Attr("delta", 1.0, "where the square becomes a line");
  }
  RegisterPairOf(registry, kHuber, std::move(huber), std::move(huber_slope),
                 true);
  registry.AddAlias("smooth_l1", "huber_loss");
  registry.AddAlias("smooth_l1_loss", "huber_loss");
  RegisterPairOf(
      registry, kBce,
      PairSchema(kBce, "",
                 "-Label * ln(X) - (1 - Label) * ln(1 - X), with logarithms of "
                 "at least -100; X is a probability. Label has no gradient",
                 " In none of Paddle's lists, so FP32 there."),
      PairSchema(kBce, "_by_x", "(X - Label) / max(X * (1 - X), 1e-12)"));
  OpSchema kldiv = PairSchema(
      kKldiv, "",
      "Target * (ln(Target) - X), 0 where Target is not above 0; X is a "
      "logarithm. Target has no gradient",
      " In none of Paddle's lists, so FP32 there, as in torch.autocast's.");
  kldiv.Attr("reduction", std::string("none"), "only none: reduce Loss")
      .Infer(InferKldiv);
  OpSchema kldiv_slope =
      PairSchema(kKldiv, "_by_x", "-Target, 0 where Target is not above 0");
  RegisterPairOf(registry, kKldiv, std::move(kldiv), std::move(kldiv_slope));
  OpSchema log_loss = PairSchema(
      kLogLoss, "",
      "-Labels * ln(Predicted + epsilon) - (1 - Labels) * ln(1 - Predicted + "
      "epsilon). Labels have no gradient",
      kClassOfPaddle);
  OpSchema log_slope =
      PairSchema(kLogLoss, "_by_x",
                 "(1 - Labels) / (1 - Predicted + epsilon) - Labels / "
                 "(Predicted + epsilon)");
  for (OpSchema* one : {&log_loss, &log_slope}) {
    one->Attr("epsilon", 1e-4, "keeps the logarithms finite");
  }
  RegisterPairOf(registry, kLogLoss, std::move(log_loss), std::move(log_slope));
}

// ---- label_smooth.

absl::Status InferLabelSmooth(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectRange(c, "epsilon", 0, 1));
  const Dims& x = c.Input("X").dims;
  if (x.empty() || !x.back().is_constant()) {
    return SlotMismatch(c, "X", "[..., classes], their number a constant");
  }
  c.SetOutput("Out", x);
  return absl::OkStatus();
}

absl::Status GradLabelSmooth(GradContext& g) {
  return g.SetGrad(
      "X", g.Emit("scale")
               .In("X", g.OutGrad("Out"))
               .Attr("scale", 1.0 - std::get<double>(g.Attr("epsilon"))));
}

void RegisterLabelSmooth(OpRegistry& registry) {
  registry.Add(
      std::move(UnarySchema("label_smooth",
                            "Out = (1 - epsilon) * X + epsilon / the number of "
                            "classes, X's last dim. Out follows X's dtype; in "
                            "none of Paddle's lists.",
                            AmpClass::kGray)
                    .Attr("epsilon", 0.0, "what all classes share")
                    .Infer(InferLabelSmooth)
                    .Grad(GradLabelSmooth)));
}

// ---- sigmoid_cross_entropy_with_logits.

absl::Status InferSigmoidCrossEntropy(InferContext& c) {
  for (const char* slot : {"Label", "pos_weight"}) {
    HT_RETURN_IF_ERROR(ExpectDims(c, slot, c.Input("X").dims, "those of X"));
  }
  c.SetOutput("Out", c.Input("X").dims);
  return absl::OkStatus();
}

absl::Status InferSigmoidCrossEntropyGrad(InferContext& c) {
  for (const char* slot : {"Label", "OutGrad", "pos_weight"}) {
    HT_RETURN_IF_ERROR(ExpectDims(c, slot, c.Input("X").dims, "those of X"));
  }
  c.SetOutput("XGrad", c.Input("X").dims);
  return absl::OkStatus();
}

absl::Status GradSigmoidCrossEntropy(GradContext& g) {
  if (!g.Wants("X")) return absl::OkStatus();
  OpBuilder builder = g.Emit("sigmoid_cross_entropy_with_logits_grad")
                          .AttrsOf(g.op())
                          .In("X", g.Input("X"))
                          .In("Label", g.Input("Label"))
                          .In("OutGrad", g.OutGrad("Out"));
  if (g.Has("pos_weight")) builder.In("pos_weight", g.Input("pos_weight"));
  return g.SetGrad("X", std::move(builder));
}

OpSchema SigmoidSchema(absl::string_view name) {
  OpSchema schema(name);
  schema.TypeVar("T", kFloatTypes)
      .In("X", "T", "any dims")
      .In("Label", "T", "dims of X: probabilities")
      .Attr("ignore_index", int64_t{-100},
            "elements with this label have loss and gradient 0")
      .Attr("normalize", false,
            "divide by the number of elements that are not ignored")
      .Amp(AmpClass::kBlack)
      .Accumulate(DType::kF32);
  return schema;
}

void RegisterSigmoidCrossEntropy(OpRegistry& registry) {
  const char* const weight_doc = "dims of X; none: 1";
  registry.Add(
      std::move(SigmoidSchema("sigmoid_cross_entropy_with_logits")
                    .Doc(absl::StrCat(
                        "Out = (1 - Label) * X + pos_weight * ln(1 + e^-X). "
                        "Label and pos_weight have no gradient.",
                        kClassOfPaddle))
                    .In("pos_weight", "T", weight_doc, kOptional)
                    .Out("Out", "T", "dims of X")
                    .Infer(InferSigmoidCrossEntropy)
                    .Grad(GradSigmoidCrossEntropy)));
  registry.Add(
      std::move(SigmoidSchema("sigmoid_cross_entropy_with_logits_grad")
                    .Doc("The gradient of sigmoid_cross_entropy_with_logits: "
                         "XGrad = (1 - Label - pos_weight * sigmoid(-X)) * "
                         "OutGrad.")
                    .In("OutGrad", "T", "dims of X")
                    .In("pos_weight", "T", weight_doc, kOptional)
                    .Out("XGrad", "T", "dims of X")
                    .Infer(InferSigmoidCrossEntropyGrad)
                    .NoGrad()
                    .Internal()));
}

// ---- nll_loss.

// X is [N, C, ...], Label [N, ...] and Weight [C].
absl::Status ExpectClasses(const InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "X", 2, 8, "[N, C, ...]"));
  Dims rows = c.Input("X").dims;
  HT_RETURN_IF_ERROR(ExpectDims(c, "Weight", {rows[1]}, "C of X"));
  rows.erase(rows.begin() + 1);
  return ExpectDims(c, "Label", rows, "those of X without the classes");
}

absl::Status InferNll(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectClasses(c));
  if (c.Str("reduction") != "none") {
    return AttrMismatch(c, "reduction", "none",
                        "reduce Out by an op, for a mean with the weights' sum "
                        "as its divisor");
  }
  c.SetOutput("Out", c.Input("Label").dims);
  return absl::OkStatus();
}

absl::Status InferNllGrad(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectClasses(c));
  HT_RETURN_IF_ERROR(
      ExpectDims(c, "OutGrad", c.Input("Label").dims, "those of Label"));
  c.SetOutput("XGrad", c.Input("X").dims);
  return absl::OkStatus();
}

absl::Status GradNll(GradContext& g) {
  if (!g.Wants("X")) return absl::OkStatus();
  OpBuilder builder = g.Emit("nll_loss_grad")
                          .AttrsOf(g.op())
                          .In("X", g.Input("X"))
                          .In("Label", g.Input("Label"))
                          .In("OutGrad", g.OutGrad("Out"))
                          .Bind("T", InputDType(g, "X"));
  if (g.Has("Weight")) builder.In("Weight", g.Input("Weight"));
  return g.SetGrad("X", std::move(builder));
}

OpSchema NllSchema(absl::string_view name, bool backward) {
  OpSchema schema(name);
  // In backward only X's dims are read: the op is told the dtype.
  schema.TypeVar("T", kFloatTypes, backward ? "f32" : "")
      .In("X", "T", "[N, C, ...]", backward ? kShapeOnly : kRequired)
      .In("Label", "i64", "[N, ...]: a class in [0, C), or ignore_index")
      .Attr("ignore_index", int64_t{-100},
            "what has this label has loss and gradient 0")
      .Amp(AmpClass::kBlack)
      .Accumulate(DType::kF32);
  return schema;
}

void RegisterNll(OpRegistry& registry) {
  const char* const weight_doc = "[C]; none: 1";
  registry.Add(std::move(
      NllSchema("nll_loss", false)
          .Doc(absl::StrCat(
              "Out = -X[Label] * Weight[Label]; X holds logarithms of "
              "probabilities. A label outside [0, C) that is not ignore_index "
              "gives NaN. Weight has no gradient.",
              kClassOfPaddle))
          .In("Weight", "f32", weight_doc, kOptional)
          .Out("Out", "f32", "dims of Label")
          .Attr("reduction", std::string("none"), "only none: reduce Out")
          .Infer(InferNll)
          .Grad(GradNll)));
  registry.Add(std::move(NllSchema("nll_loss_grad", true)
                             .Doc("The gradient of nll_loss: -OutGrad * "
                                  "Weight[Label] at Label, else 0.")
                             .In("OutGrad", "f32", "dims of Label")
                             .In("Weight", "f32", weight_doc, kOptional)
                             .Out("XGrad", "T", "dims of X")
                             .Infer(InferNllGrad)
                             .NoGrad()
                             .Internal()));
}

}  // namespace

void RegisterPointwiseLoss(OpRegistry& registry) {
  RegisterPairs(registry);
  RegisterLabelSmooth(registry);
  RegisterSigmoidCrossEntropy(registry);
  RegisterNll(registry);
}

}  // namespace ops
}  // namespace halftone
