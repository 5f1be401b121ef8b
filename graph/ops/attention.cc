// Attention of queries to keys and values as one op.
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ir/well_known.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"
#include "graph/ops/unary_schema.h"

namespace halftone {
namespace ops {
namespace {

constexpr char kAttention[] = "scaled_dot_product_attention";
constexpr char kAttentionGrad[] = "scaled_dot_product_attention_grad";
constexpr char kAttentionInfer[] = "scaled_dot_product_attention_infer";

const DTypeSet& MaskTypes() {
  static const auto* const types =
      new DTypeSet{DType::kF32, DType::kF16, DType::kBF16, DType::kBool};
  return *types;
}

absl::Status ExpectDim(const InferContext& c, absl::string_view slot, int axis,
                       const Dim& dim, absl::string_view of) {
  if (c.Input(slot).dims[axis] == dim) return absl::OkStatus();
  return SlotMismatch(
      c, slot,
      absl::StrCat(PrintDims(c, {dim}), " as dim ", axis, ", that of ", of,
                   ", ", c.Print(c.Input(of))));
}

absl::Status ExpectHeads(const InferContext& c) {
  const Dim &heads = c.Input("Q").dims[2], &shared = c.Input("K").dims[2];
  if (heads == shared || (heads.is_constant() && shared.is_constant() &&
                          shared.coefficient() > 0 &&
                          heads.coefficient() % shared.coefficient() == 0)) {
    return absl::OkStatus();
  }
  return SlotMismatch(
      c, "K",
      absl::StrCat("as many heads as Q, ", c.Print(c.Input("Q")),
                   ", or a divisor of them"));
}

absl::Status ExpectMask(const InferContext& c, const Dims& scores) {
  if (!c.HasInput("Mask")) return absl::OkStatus();
  HT_RETURN_IF_ERROR(
      ExpectRank(c, "Mask", 4, "[B or 1, H or 1, T or 1, S or 1]"));
  for (int i = 0; i < 4; ++i) {
    const Dim& dim = c.Input("Mask").dims[i];
    if (dim == scores[i] || dim == Dim(1)) continue;
    return SlotMismatch(
        c, "Mask", absl::StrCat(PrintDims(c, scores), " with any of them 1"),
        "the scores are [B, H, T, S]");
  }
  return absl::OkStatus();
}

// Checks what op and gradient share.
absl::Status CheckAttention(const InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "Q", 4, "[B, T, H, D]"));
  HT_RETURN_IF_ERROR(ExpectRank(c, "K", 4, "[B, S, H, D]"));
  HT_RETURN_IF_ERROR(ExpectRank(c, "V", 4, "[B, S, H, E]"));
  const Dims &q = c.Input("Q").dims, &k = c.Input("K").dims;
  HT_RETURN_IF_ERROR(ExpectDim(c, "K", 0, q[0], "Q"));
  HT_RETURN_IF_ERROR(ExpectDim(c, "K", 3, q[3], "Q"));
  for (int i = 0; i < 3; ++i) {
    HT_RETURN_IF_ERROR(ExpectDim(c, "V", i, k[i], "K"));
  }
  HT_RETURN_IF_ERROR(ExpectHeads(c));
  HT_RETURN_IF_ERROR(ExpectMask(c, {q[0], q[2], q[1], k[1]}));
  HT_RETURN_IF_ERROR(
      ExpectRange(c, "scale", 0, std::numeric_limits<double>::max()));
  if (c.schema().FindAttr("dropout_prob") < 0) return absl::OkStatus();
  HT_RETURN_IF_ERROR(ExpectScalars(c, {"Seed", "Step", "FirstSample"}));
  HT_RETURN_IF_ERROR(ExpectRange(c, "dropout_prob", 0, 1));
  if (c.Float("dropout_prob") < 1) return absl::OkStatus();
  return AttrMismatch(c, "dropout_prob", "less than 1",
                      "all weights would be dropped");
}

// [B, T, H, E] and [B, H, T].
Dims OutDims(const InferContext& c) {
  const Dims& q = c.Input("Q").dims;
  return {q[0], q[1], q[2], c.Input("V").dims[3]};
}
Dims LogSumExpDims(const InferContext& c) {
  const Dims& q = c.Input("Q").dims;
  return {q[0], q[2], q[1]};
}

absl::Status InferAttention(InferContext& c) {
  HT_RETURN_IF_ERROR(CheckAttention(c));
  c.SetOutput("Out", OutDims(c));
  if (c.schema().FindOutput("LogSumExp") >= 0) {
    c.SetOutput("LogSumExp", LogSumExpDims(c));
  }
  return absl::OkStatus();
}

absl::Status InferAttentionGrad(InferContext& c) {
  HT_RETURN_IF_ERROR(CheckAttention(c));
  for (const char* slot : {"Out", "OutGrad"}) {
    HT_RETURN_IF_ERROR(ExpectDims(c, slot, OutDims(c), "[B, T, H, E]"));
  }
  HT_RETURN_IF_ERROR(ExpectDims(c, "LogSumExp", LogSumExpDims(c), "[B, H, T]"));
  for (const char* slot : {"Q", "K", "V"}) {
    c.SetOutput(absl::StrCat(slot, "Grad"), c.Input(slot).dims);
  }
  return absl::OkStatus();
}

absl::Status Refuse(GradContext& g, absl::string_view slot,
                    absl::string_view advice) {
  return ModelError(g.block().name(g.op()), " (", kAttention, "): slot ", slot,
                    ": expected no gradient, found one; ", advice);
}

absl::Status GradAttention(GradContext& g) {
  if (g.OutGrad("LogSumExp").valid()) {
    return Refuse(g, "LogSumExp",
                  "the loss must not depend on it but through Out");
  }
  if (g.Has("Mask") && g.Wants("Mask")) {
    return Refuse(g, "Mask",
                  "a mask that is trained needs its scores in memory: write "
                  "matmul, elementwise_add, softmax and matmul instead");
  }
  OpBuilder builder = g.Emit(kAttentionGrad).AttrsOf(g.op());
  for (const char* slot : {"Q", "K", "V"}) builder.In(slot, g.Input(slot));
  if (g.Has("Mask")) builder.In("Mask", g.Input("Mask"));
  builder.In("Out", g.Output("Out"))
      .In("LogSumExp", g.Output("LogSumExp"))
      .In("OutGrad", g.OutGrad("Out"));
  for (const char* slot : {"Seed", "Step", "FirstSample"}) {
    builder.In(slot, g.Input(slot));
  }
  for (const char* slot : {"Q", "K", "V"}) {
    if (!g.Wants(slot)) continue;
    builder.Out(absl::StrCat(slot, "Grad"), g.GradName(slot));
  }
  HT_ASSIGN_OR_RETURN(const OpId id, builder.Build());
  int i = 0;
  for (const char* slot : {"Q", "K", "V"}) {
    const ValueId gradient = g.block().op(id).outputs.all()[i++];
    if (g.Wants(slot)) g.SetGrad(slot, gradient);
  }
  return absl::OkStatus();
}

// Two products of [T, D] and [D, S] a head, five in its gradient. With
// `causal`, half of the scores.
Dim AttentionFlops(const Block& block, const Op& op, int64_t products) {
  const Dims& q = block.type(op.in(0)).dims;
  const Dims& k = block.type(op.in(1)).dims;
  const int64_t each = AttrAs<bool>(op, "causal") ? 1 : 2;
  return Dim(each * products) * q[0] * q[1] * q[2] * q[3] * k[1];
}
Dim AttentionFlops(const Block& block, const Op& op) {
  return AttentionFlops(block, op, 2);
}
Dim AttentionGradFlops(const Block& block, const Op& op) {
  return AttentionFlops(block, op, 5);
}

// The inputs of all three.
OpSchema AttentionSchema(const char* name) {
  OpSchema schema(name);
  schema.TypeVar("T", kFloatTypes)
      .TypeVar("TMask", MaskTypes())
      .In("Q", "T", "[B, T, H, D]: queries")
      .In("K", "T",
          "[B, S, H, D]: keys; fewer heads, a divisor of H, are each shared by "
          "as many heads of Q in turn")
      .In("V", "T", "[B, S, H, E]: values, as many heads as K")
      .In("Mask", "TMask",
          "[B or 1, H or 1, T or 1, S or 1]: numbers are added to the scaled "
          "scores; bool: whether a row may look at a column. Gets no gradient",
          kOptional)
      .Attr("causal", false,
            "row t looks at columns 0 to t only, also where S is not T")
      .Attr("scale", 0.0, "of the scores; 0: 1 / sqrt(D)");
  return schema;
}

void AddDropout(OpSchema& schema) {
  schema.ImplicitIn("Seed", "i64", kSeed)
      .ImplicitIn("Step", "i64", kAttempted)
      .ImplicitIn("FirstSample", "i64", kFirstSample)
      .Attr("dropout_prob", 0.0,
            "probability with which a weight is dropped; kept ones are divided "
            "by 1 - dropout_prob")
      .StreamAttr(
          "which stream of random numbers; 0 in a model: from the op's name")
      .NoMerge();
}

void AddDetails(OpSchema& schema, FlopsOf flops) {
  schema.Costs(Work::kProduct, flops)
      .Amp(AmpClass::kWhite)
      .Accumulate(DType::kF32);
}

}  // namespace

void RegisterAttention(OpRegistry& registry) {
  OpSchema attention = AttentionSchema(kAttention);
  AddDropout(attention);
  attention
      .Doc(absl::StrCat(
          "Out = dropout(softmax(scale * Q K' + Mask)) V for each sample and "
          "head, in tiles: the T x S scores are never in memory (Dao et al. "
          "2022). Scores and softmax are f32. A row that may look at no column "
          "gives 0 and a LogSumExp of infinity. Heads lie behind tokens, as in "
          "Paddle's op and as products of [B, T, H * D] lie, so that neither "
          "side is transposed. At test time no weight is dropped.",
          kClassOfAutocast))
      .Out("Out", "T", "[B, T, H, E]")
      .Out("LogSumExp", "f32", "[B, H, T]: of the rows' scores")
      .Infer(InferAttention)
      .Grad(GradAttention)
      .ToTest(kAttentionInfer);
  AddDetails(attention, AttentionFlops);
  registry.Add(std::move(attention));

  OpSchema infer = AttentionSchema(kAttentionInfer);
  infer.Doc("scaled_dot_product_attention at test time: no weight is dropped.")
      .Out("Out", "T", "[B, T, H, E]")
      .Infer(InferAttention)
      .NoGrad()
      .Internal();
  AddDetails(infer, AttentionFlops);
  registry.Add(std::move(infer));

  OpSchema grad = AttentionSchema(kAttentionGrad);
  grad.Doc(
          "The gradient of scaled_dot_product_attention. Weights are computed "
          "again, tile by tile, from LogSumExp (Dao 2023).")
      .In("Out", "T", "[B, T, H, E]")
      .In("LogSumExp", "f32", "[B, H, T]")
      .In("OutGrad", "T", "[B, T, H, E]")
      .Out("QGrad", "T", "dims of Q")
      .Out("KGrad", "T", "dims of K")
      .Out("VGrad", "T", "dims of V")
      .Infer(InferAttentionGrad)
      .NoGrad()
      .Internal();
  AddDropout(grad);
  AddDetails(grad, AttentionGradFlops);
  registry.Add(std::move(grad));
}

}  // namespace ops
}  // namespace halftone
