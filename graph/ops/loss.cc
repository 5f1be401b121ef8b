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

constexpr int kAnyRank = std::numeric_limits<int>::max();

// ---- Cross entropy.

// Whether Label is [...] or [..., 1] for scores [..., C].
absl::Status ExpectLabels(const InferContext& c, absl::string_view scores) {
  HT_RETURN_IF_ERROR(ExpectRank(c, scores, 1, kAnyRank, "[..., C]"));
  const Dims& x = c.Input(scores).dims;
  const Dims& label = c.Input("Label").dims;
  const Dims rows(x.begin(), x.end() - 1);
  Dims column = rows;
  column.push_back(Dim(1));
  if (label == rows || label == column) return absl::OkStatus();
  return SlotMismatch(
      c, "Label",
      absl::StrCat("dims ", PrintDims(c, rows), " or ", PrintDims(c, column),
                   ", one label per row of ", scores, ", ",
                   c.Print(c.Input(scores))),
      "reshape it");
}

absl::Status ExpectLastAxis(const InferContext& c, int rank) {
  const int64_t axis = c.Int("axis");
  if (axis == -1 || axis == rank - 1) return absl::OkStatus();
  return AttrMismatch(c, "axis", "-1, the last axis",
                      "transpose Logits so that the classes come last");
}

absl::Status InferCrossEntropy(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectLabels(c, "Logits"));
  HT_RETURN_IF_ERROR(ExpectLastAxis(c, c.Input("Logits").rank()));
  if (c.Bool("soft_label")) {
    return AttrMismatch(c, "soft_label", "false",
                        "give class numbers as labels");
  }
  c.SetOutput("Loss", c.Input("Label").dims);
  return absl::OkStatus();
}

absl::Status InferCrossEntropyGrad(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectLabels(c, "Logits"));
  HT_RETURN_IF_ERROR(ExpectLastAxis(c, c.Input("Logits").rank()));
  HT_RETURN_IF_ERROR(
      ExpectDims(c, "LossGrad", c.Input("Label").dims, "those of Label"));
  c.SetOutput("LogitsGrad", c.Input("Logits").dims);
  return absl::OkStatus();
}

absl::Status GradCrossEntropy(GradContext& g) {
  return g.SetGrad("Logits", g.Emit("softmax_with_cross_entropy_grad")
                                 .AttrsOf(g.op())
                                 .In("Logits", g.Input("Logits"))
                                 .In("Label", g.Input("Label"))
                                 .In("LossGrad", g.OutGrad("Loss")));
}

OpSchema CrossEntropySchema(absl::string_view name) {
  OpSchema schema(name);
  schema.TypeVar("T", kFloatTypes)
      .In("Logits", "T", "[..., C]")
      .In("Label", "i64",
          "[...] or [..., 1]: a class in [0, C), or "
          "ignore_index")
      .Attr("axis", int64_t{-1}, "the axis of the classes: the last one")
      .Attr("ignore_index", int64_t{-100},
            "rows with this label have loss and gradient 0")
      .Amp(AmpClass::kBlack)
      .Accumulate(DType::kF32);
  return schema;
}

void RegisterCrossEntropy(OpRegistry& registry) {
  registry.Add(
      CrossEntropySchema("softmax_with_cross_entropy")
          .Doc("Loss = log(sum of exp(Logits)) - Logits[Label], per row, in "
               "f32. A label outside [0, C) that is not ignore_index gives "
               "NaN.")
          .Out("Loss", "f32", "dims of Label")
          .Attr("soft_label", false, "labels are classes: only false")
          .Infer(InferCrossEntropy)
          .Grad(GradCrossEntropy));
  registry.AddAlias("cross_entropy_with_softmax", "softmax_with_cross_entropy");
  registry.Add(CrossEntropySchema("softmax_with_cross_entropy_grad")
                   .Doc("The gradient of softmax_with_cross_entropy: "
                        "LogitsGrad = (softmax(Logits) - one-hot(Label)) * "
                        "LossGrad.")
                   .TypeVar("TG", kFloatTypes, "T")
                   .In("LossGrad", "f32", "dims of Label")
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

absl::Status InferCorrectCount(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectTopK(c));
  HT_RETURN_IF_ERROR(ExpectLabels(c, "X"));
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
                   .NoGrad()
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
