// Losses, reductions and the counts that metrics are made of.
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"

namespace halftone {
namespace ops {
namespace {

// ---- Cross entropy.

// Whether Label has a class for each row of the scores: their dims without that
// of the classes, or with 1 in its place.
absl::Status ExpectLabels(const InferContext& c, absl::string_view scores,
                          int axis) {
  const Dims& x = c.Input(scores).dims;
  const Dims& label = c.Input("Label").dims;
  Dims rows = x, column = x;
  rows.erase(rows.begin() + axis);
  column[axis] = Dim(1);
  if (label == rows || label == column) return absl::OkStatus();
  return SlotMismatch(
      c, "Label",
      absl::StrCat("dims ", PrintDims(c, rows), " or ", PrintDims(c, column),
                   ", one label per row of ", scores, ", ",
                   c.Print(c.Input(scores))),
      "reshape it");
}

// The dims of the loss.
absl::StatusOr<Dims> CheckCrossEntropy(const InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "Logits", 1, kAnyRank, "[..., C]"));
  const TensorType& x = c.Input("Logits");
  HT_ASSIGN_OR_RETURN(const int axis, Axis(c, "axis", x.rank()));
  const TensorType& label = c.Input("Label");
  const bool soft = c.Bool("soft_label");
  if (soft == IsFloat(label.dtype)) {
    if (!soft) {
      HT_RETURN_IF_ERROR(ExpectLabels(c, "Logits", axis));
      return label.dims;
    }
    HT_RETURN_IF_ERROR(ExpectDims(c, "Label", x.dims, "those of Logits"));
    Dims rows = x.dims;
    rows[axis] = Dim(1);
    return rows;
  }
  return SlotMismatch(c, "Label",
                      soft ? "probabilities, since soft_label is true"
                           : "classes, since soft_label is false",
                      soft ? "set soft_label to false" : "cast it to i64");
}

absl::Status InferCrossEntropy(InferContext& c) {
  HT_ASSIGN_OR_RETURN(Dims loss, CheckCrossEntropy(c));
  c.SetOutput("Loss", std::move(loss));
  return absl::OkStatus();
}

absl::Status InferCrossEntropyGrad(InferContext& c) {
  HT_ASSIGN_OR_RETURN(const Dims loss, CheckCrossEntropy(c));
  HT_RETURN_IF_ERROR(ExpectDims(c, "LossGrad", loss, "those of the loss"));
  c.SetOutput("LogitsGrad", c.Input("Logits").dims);
  return absl::OkStatus();
}

absl::Status GradCrossEntropy(GradContext& g) {
  if (!g.Wants("Logits")) return absl::OkStatus();
  return g.SetGrad("Logits", g.Emit("softmax_with_cross_entropy_grad")
                                 .AttrsOf(g.op())
                                 .In("Logits", g.Input("Logits"))
                                 .In("Label", g.Input("Label"))
                                 .In("LossGrad", g.OutGrad("Loss")));
}

OpSchema CrossEntropySchema(absl::string_view name) {
  OpSchema schema(name);
  schema.TypeVar("T", kFloatTypes)
      .TypeVar("TL", {DType::kI64, DType::kF32, DType::kF16, DType::kBF16})
      .In("Logits", "T", "[..., C]")
      .In("Label", "TL",
          "[...] or [..., 1]: a class in [0, C), or ignore_index; with "
          "soft_label the dims of Logits: probabilities")
      .Attr("axis", int64_t{-1}, "the axis of the classes")
      .Attr("ignore_index", int64_t{-100},
            "rows with this label have loss and gradient 0")
      .Attr("soft_label", false, "labels are probabilities, not classes")
      .Attr("use_softmax", true, "false: Logits are probabilities already")
      .Amp(AmpClass::kBlack)
      .Accumulate(DType::kF32);
  return schema;
}

void RegisterCrossEntropy(OpRegistry& registry) {
  registry.Add(
      CrossEntropySchema("softmax_with_cross_entropy")
          .Doc("Loss = log(sum of exp(Logits)) - Logits[Label], per row, in "
               "f32; with soft_label its sum over the classes, weighted by "
               "Label, which has no gradient. A class outside [0, C) that is "
               "not ignore_index gives NaN.")
          .Out("Loss", "f32", "dims of Label; with soft_label [..., 1]")
          .Infer(InferCrossEntropy)
          .Grad(GradCrossEntropy));
  registry.AddAlias("cross_entropy_with_softmax", "softmax_with_cross_entropy");
  registry.Add(CrossEntropySchema("softmax_with_cross_entropy_grad")
                   .Doc("The gradient of softmax_with_cross_entropy: "
                        "LogitsGrad = (softmax(Logits) - one-hot(Label)) * "
                        "LossGrad.")
                   .TypeVar("TG", kFloatTypes, "T")
                   .In("LossGrad", "f32", "dims of the loss")
                   .Out("LogitsGrad", "TG", "dims of Logits")
                   .Infer(InferCrossEntropyGrad)
                   .NoGrad()
                   .Internal());
}

// ---- Reductions and their counterpart.

absl::Status InferBroadcastLike(InferContext& c) {
  const Dims& like = c.Input("Like").dims;
  HT_ASSIGN_OR_RETURN(const auto reduced, ReducedAxes(c, like.size()));
  HT_RETURN_IF_ERROR(
      ExpectDims(c, "X", ReduceDims(like, reduced, c.Bool("keep_dim")),
                 absl::StrCat("those of Like, ", c.Print(c.Input("Like")),
                              ", reduced over dim")));
  c.SetOutput("Out", like);
  return absl::OkStatus();
}

absl::Status GradMean(GradContext& g) {
  return g.SetGrad("X", g.Emit("broadcast_like")
                            .In("X", g.OutGrad("Out"))
                            .In("Like", g.Input("X"))
                            .Attr("mean", true)
                            .Bind("TOut", InputDType(g, "X")));
}

absl::Status GradReduce(GradContext& g, bool mean) {
  OpBuilder builder = g.Emit("broadcast_like")
                          .AttrsOf(g.op())
                          .In("X", g.OutGrad("Out"))
                          .In("Like", g.Input("X"))
                          .Bind("TOut", InputDType(g, "X"));
  if (std::get<bool>(g.Attr("reduce_all"))) {
    builder.Attr("dim", std::vector<int64_t>());
  }
  if (mean) builder.Attr("mean", true);
  return g.SetGrad("X", std::move(builder));
}

absl::Status GradBroadcastLike(GradContext& g) {
  const bool mean = std::get<bool>(g.Attr("mean"));
  return g.SetGrad("X", g.Emit(mean ? "reduce_mean" : "reduce_sum")
                            .AttrsOf(g.op())
                            .In("X", g.OutGrad("Out"))
                            .Bind("TOut", InputDType(g, "X")));
}

OpSchema ReductionSchema(absl::string_view name, absl::string_view doc) {
  OpSchema schema(name);
  schema.Doc(doc)
      .TypeVar("T", kFloatTypes)
      .TypeVar("TOut", kFloatTypes, "T")
      .Accumulate(DType::kF32);
  return schema;
}

OpSchema& AddDims(OpSchema& schema) {
  return schema
      .Attr("dim", std::vector<int64_t>(), "axes that are reduced; []: all")
      .Attr("keep_dim", false, "reduced axes stay, with dim 1");
}

void RegisterReduce(OpRegistry& registry, absl::string_view name,
                    absl::string_view doc, bool mean) {
  OpSchema schema = ReductionSchema(name, doc);
  AddDims(schema)
      .In("X", "T", "any dims")
      .Out("Out", "TOut", "dims of X without the reduced ones")
      .Attr("reduce_all", false, "reduce all axes, whatever dim says")
      .Infer(InferReduce)
      .Grad([mean](GradContext& g) { return GradReduce(g, mean); })
      .Amp(AmpClass::kBlack)
      .Layout(LayoutRule::kChannelsLastOk);
  registry.Add(std::move(schema));
}

void RegisterReductions(OpRegistry& registry) {
  registry.Add(
      ReductionSchema("mean", "Out = the mean of all elements of X; 0 of none.")
          .In("X", "T", "any dims")
          .Out("Out", "TOut", "[]")
          .Infer(ScalarOut("Out"))
          .Grad(GradMean)
          .Amp(AmpClass::kBlack)
          .Layout(LayoutRule::kChannelsLastOk));
  RegisterReduce(registry, "reduce_sum", "Out = sums of X over axes.", false);
  RegisterReduce(registry, "reduce_mean",
                 "Out = means of X over axes; 0 over none.", true);
  OpSchema broadcast = ReductionSchema(
      "broadcast_like",
      "Out = X repeated to the dims of Like: the gradient of a reduction.");
  AddDims(broadcast)
      .In("X", "T", "dims of Like, reduced over dim")
      .In("Like", "T", "any dims, any dtype", kShapeOnly)
      .Out("Out", "TOut", "dims of Like")
      .Attr("mean", false,
            "divide by the elements of Like per element of X (0 if none)")
      .Infer(InferBroadcastLike)
      .Grad(GradBroadcastLike)
      .Amp(AmpClass::kGray);
  registry.Add(std::move(broadcast));
}

// ---- Counts.

// k and the number of classes, where both are known.
absl::Status ExpectTopK(const InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "X", 1, kAnyRank, "[..., C]"));
  const int64_t k = c.Int("k");
  const Dim& classes = c.Input("X").dims.back();
  if (k >= 1 && (!classes.is_constant() || k <= classes.coefficient())) {
    return absl::OkStatus();
  }
  return AttrMismatch(
      c, "k",
      absl::StrCat("1 to ", PrintDims(c, {classes}), ", the last dim of X"));
}

absl::Status InferTopK(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectTopK(c));
  Dims out = c.Input("X").dims;
  out.back() = Dim(c.Int("k"));
  c.SetOutput("Out", out);
  c.SetOutput("Indices", out);
  return absl::OkStatus();
}

// OutGrad in the places that Indices name, zeros elsewhere.
absl::Status GradTopK(GradContext& g) {
  if (!g.OutGrad("Out").valid()) return absl::OkStatus();
  const Dim& classes = g.type(g.Input("X")).dims.back();
  if (!classes.is_constant()) {
    return ModelError(g.block().name(g.op()), " (top_k): slot X: expected a ",
                      "last dim that is a number, for the gradient; found one ",
                      "that is known at run time");
  }
  const auto column = [&g](ValueId value) {
    return BuildValue(g, g.Emit("unsqueeze")
                             .In("X", value)
                             .Attr("axes", std::vector<int64_t>{-1}));
  };
  HT_ASSIGN_OR_RETURN(
      const ValueId places,
      BuildValue(g, g.Emit("arange").Attr(
                        "end", static_cast<double>(classes.coefficient()))));
  HT_ASSIGN_OR_RETURN(const ValueId indices, column(g.Output("Indices")));
  HT_ASSIGN_OR_RETURN(
      const ValueId is_place,
      BuildValue(g, g.Emit("equal").In("X", indices).In("Y", places)));
  HT_ASSIGN_OR_RETURN(const ValueId grad, column(g.OutGrad("Out")));
  HT_ASSIGN_OR_RETURN(
      const ValueId zero,
      BuildValue(g, g.Emit("fill_constant").Attr("dtype", g.type(grad).dtype)));
  HT_ASSIGN_OR_RETURN(const ValueId placed,
                      BuildValue(g, g.Emit("where")
                                        .In("Condition", is_place)
                                        .In("X", grad)
                                        .In("Y", zero)));
  return g.SetGrad("X", g.Emit("reduce_sum")
                            .In("X", placed)
                            .Attr("dim", std::vector<int64_t>{-2}));
}

absl::Status InferCorrectCount(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectTopK(c));
  HT_RETURN_IF_ERROR(ExpectLabels(c, "X", c.Input("X").rank() - 1));
  c.SetOutput("Out", {});
  return absl::OkStatus();
}

void RegisterCounts(OpRegistry& registry) {
  registry.Add(OpSchema("correct_count")
                   .Doc("Out = how many rows have their label among the k "
                        "largest scores; of equal scores the lower class "
                        "comes first.")
                   .TypeVar("T", kFloatTypes)
                   .In("X", "T", "[..., C]: scores")
                   .In("Label", "i64", "[...] or [..., 1]")
                   .Out("Out", "i64", "[]")
                   .Attr("k", int64_t{1}, "1: the largest score alone")
                   .Infer(InferCorrectCount)
                   .NoGrad()
                   .Amp(AmpClass::kClear));
  registry.Add(OpSchema("top_k")
                   .Doc("The k largest of each row, in descending order; of "
                        "equal ones the lower index comes first.")
                   .TypeVar("T", kFloatTypes)
                   .In("X", "T", "[..., C]")
                   .Out("Out", "T", "[..., k]: values")
                   .Out("Indices", "i64", "[..., k]: their places in the row")
                   .Attr("k", int64_t{1}, "from 1 to C")
                   .Attr("written_as", std::string(),
                         "the alias that the model has: lists of ops tell "
                         "top_k_v2 apart")
                   .Infer(InferTopK)
                   .Grad(GradTopK)
                   .Amp(AmpClass::kGray));
  registry.AddAlias("top_k_v2", "top_k");
}

}  // namespace

void RegisterLoss(OpRegistry& registry) {
  RegisterCrossEntropy(registry);
  RegisterReductions(registry);
  RegisterCounts(registry);
}

}  // namespace ops
}  // namespace halftone
