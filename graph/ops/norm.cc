// Batch normalisation, whole and in the parts that lowering splits it into.
// C is dim 1; a channel's rows are all other dims.
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

// Checks that X is [N, C, ...], that each slot in `vectors` is [C] and that
// each in `like_x` has X's dims.
absl::Status ExpectChannels(const InferContext& c,
                            std::initializer_list<absl::string_view> vectors,
                            std::initializer_list<absl::string_view> like_x) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "X", 2, kAnyRank, "[N, C, ...]"));
  const Dims& x = c.Input("X").dims;
  for (const absl::string_view slot : vectors) {
    HT_RETURN_IF_ERROR(ExpectDims(
        c, slot, {x[1]}, absl::StrCat("C of X, ", c.Print(c.Input("X")))));
  }
  for (const absl::string_view slot : like_x) {
    HT_RETURN_IF_ERROR(ExpectDims(c, slot, x, "those of X"));
  }
  return absl::OkStatus();
}

absl::Status ExpectEpsilon(const InferContext& c) {
  return ExpectRange(c, "epsilon", 0, kMaxDouble);
}

// Each vector has the dims [C] of the first one, each scalar [].
absl::Status ExpectVectors(const InferContext& c,
                           std::initializer_list<absl::string_view> vectors,
                           std::initializer_list<absl::string_view> scalars) {
  const absl::string_view first = *vectors.begin();
  HT_RETURN_IF_ERROR(ExpectRank(c, first, 1, "[C]"));
  for (const absl::string_view slot : vectors) {
    HT_RETURN_IF_ERROR(ExpectDims(c, slot, c.Input(first).dims,
                                  absl::StrCat("those of ", first)));
  }
  return ExpectScalars(c, scalars);
}

// ---- The whole norm.

absl::Status ExpectGroupSize(const InferContext& c) {
  if (c.schema().FindAttr("group_size") < 0 || c.Int("group_size") >= 0) {
    return absl::OkStatus();
  }
  return AttrMismatch(c, "group_size", "0 or more ranks");
}

absl::Status InferBatchNorm(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectGroupSize(c));
  HT_RETURN_IF_ERROR(
      ExpectChannels(c, {"Scale", "Bias", "Mean", "Variance"}, {}));
  HT_RETURN_IF_ERROR(ExpectEpsilon(c));
  HT_RETURN_IF_ERROR(ExpectRange(c, "momentum", 0, 1));
  const Dims& x = c.Input("X").dims;
  c.SetOutput("Y", x);
  c.SetOutput("BatchMean", {x[1]});
  c.SetOutput("BatchVariance", {x[1]});
  c.SetOutput("BatchCount", {});
  return absl::OkStatus();
}

absl::Status InferBatchNormGrad(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectGroupSize(c));
  HT_RETURN_IF_ERROR(
      ExpectChannels(c, {"Scale", "BatchMean", "BatchVariance"}, {"YGrad"}));
  if (c.schema().FindInput("BatchCount") >= 0) {
    HT_RETURN_IF_ERROR(ExpectScalars(c, {"BatchCount"}));
  }
  HT_RETURN_IF_ERROR(ExpectEpsilon(c));
  const Dims& x = c.Input("X").dims;
  c.SetOutput("XGrad", x);
  c.SetOutput("ScaleGrad", {x[1]});
  c.SetOutput("BiasGrad", {x[1]});
  return absl::OkStatus();
}

absl::Status GradBatchNorm(GradContext& g, bool sync) {
  for (const char* slot : {"BatchMean", "BatchVariance", "BatchCount"}) {
    if (!g.OutGrad(slot).valid()) continue;
    return ModelError(g.block().name(g.op()), " (", g.op().schema->name(),
                      "): slot ", slot,
                      ": expected no gradient, found one; the loss must not "
                      "depend on batch statistics but through Y");
  }
  OpBuilder builder = g.Emit(sync ? "sync_batch_norm_grad" : "batch_norm_grad")
                          .AttrsOf(g.op())
                          .In("X", g.Input("X"))
                          .In("YGrad", g.OutGrad("Y"))
                          .In("Scale", g.Input("Scale"))
                          .In("BatchMean", g.Output("BatchMean"))
                          .In("BatchVariance", g.Output("BatchVariance"));
  if (sync) builder.In("BatchCount", g.Output("BatchCount"));
  static constexpr const char* kSlots[] = {"X", "Scale", "Bias"};
  for (const char* slot : kSlots) {
    if (!g.Wants(slot)) continue;
    builder.Out(absl::StrCat(slot, "Grad"), g.GradName(slot));
  }
  HT_ASSIGN_OR_RETURN(const OpId op, builder.Build());
  for (int i = 0; i < 3; ++i) {
    if (g.Wants(kSlots[i])) g.SetGrad(kSlots[i], g.block().op(op).out(i));
  }
  return absl::OkStatus();
}

OpSchema ImageSchema(absl::string_view name, absl::string_view doc) {
  OpSchema schema(name);
  schema.Doc(doc)
      .TypeVar("T", kFloatTypes)
      .In("X", "T", "[N, C, ...]")
      .Costs(Work::kNorm)
      .Amp(AmpClass::kGray)
      .Accumulate(DType::kF32)
      .Layout(LayoutRule::kChannelsLastOk);
  return schema;
}

OpSchema& AddEpsilon(OpSchema& schema) {
  return schema.Attr("epsilon", 1e-5, "added to the variance");
}

OpSchema& AddGroupSize(OpSchema& schema) {
  return schema.Attr("group_size", int64_t{0},
                     "above 0: of so many consecutive ranks, each group by "
                     "itself; 0: of all ranks");
}

OpSchema& AddAffine(OpSchema& schema) {
  return schema.In("Scale", "f32", "[C]", kKeepF32)
      .In("Bias", "f32", "[C]", kKeepF32)
      .In("Mean", "f32", "[C]: running mean", kKeepF32)
      .In("Variance", "f32", "[C]: running variance", kKeepF32);
}

OpSchema BatchNormSchema(absl::string_view name, absl::string_view doc,
                         bool sync) {
  OpSchema schema = ImageSchema(name, doc);
  AddAffine(schema);
  AddEpsilon(schema)
      .Out("Y", "T", "dims of X")
      .Out("BatchMean", "f32", "[C]")
      .Out("BatchVariance", "f32", "[C]: biased")
      .Out("BatchCount", "f32", "[]: rows per channel")
      .Attr("momentum", 0.9,
            "of the running statistics: new = momentum * old + (1 - momentum) "
            "* batch")
      .Infer(InferBatchNorm)
      .Grad([sync](GradContext& g) { return GradBatchNorm(g, sync); })
      .ToTest("scale_bias");
  if (sync) AddGroupSize(schema).SplitOnly();
  return schema;
}

OpSchema BatchNormGradSchema(absl::string_view name, absl::string_view doc,
                             bool sync) {
  OpSchema schema = ImageSchema(name, doc);
  schema.In("YGrad", "T", "dims of X")
      .In("Scale", "f32", "[C]")
      .In("BatchMean", "f32", "[C]")
      .In("BatchVariance", "f32", "[C]");
  if (sync) schema.In("BatchCount", "f32", "[]: rows of its ranks");
  AddEpsilon(schema)
      .Out("XGrad", "T", "dims of X")
      .Out("ScaleGrad", "f32", "[C]: of this rank")
      .Out("BiasGrad", "f32", "[C]: of this rank")
      .Lossy("X")
      .Infer(InferBatchNormGrad)
      .NoGrad()
      .Internal();
  if (sync) AddGroupSize(schema).SplitOnly();
  return schema;
}

void RegisterWhole(OpRegistry& registry) {
  registry.Add(BatchNormSchema(
      "batch_norm",
      "Y = (X - BatchMean) / sqrt(BatchVariance + epsilon) * Scale + Bias per "
      "channel; at test time with Mean and Variance.",
      false));
  registry.Add(BatchNormSchema(
      "sync_batch_norm",
      "batch_norm whose batch is that of all ranks, or of a group of them: the "
      "statistics are theirs.",
      true));
  registry.Add(BatchNormGradSchema("batch_norm_grad",
                                   "The gradients of batch_norm.", false));
  registry.Add(BatchNormGradSchema("sync_batch_norm_grad",
                                   "The gradients of sync_batch_norm.", true));
}

// ---- Its parts on images.

absl::Status InferChannelStats(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectChannels(c, {}, {}));
  const Dim channels = c.Input("X").dims[1];
  c.SetOutput("Mean", {channels});
  c.SetOutput("Variance", {channels});
  c.SetOutput("Count", {});
  return absl::OkStatus();
}

absl::Status InferScaleBias(InferContext& c) {
  HT_RETURN_IF_ERROR(
      ExpectChannels(c, {"Scale", "Bias", "Mean", "Variance"}, {}));
  HT_RETURN_IF_ERROR(ExpectEpsilon(c));
  c.SetOutput("Y", c.Input("X").dims);
  return absl::OkStatus();
}

absl::Status InferGradReduce(InferContext& c) {
  HT_RETURN_IF_ERROR(
      ExpectChannels(c, {"BatchMean", "BatchVariance"}, {"YGrad"}));
  HT_RETURN_IF_ERROR(ExpectEpsilon(c));
  c.SetOutput("ScaleGrad", {c.Input("X").dims[1]});
  c.SetOutput("BiasGrad", {c.Input("X").dims[1]});
  return absl::OkStatus();
}

absl::Status InferGradApply(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectChannels(c, {"Mean", "A", "B", "C0"}, {"YGrad"}));
  c.SetOutput("XGrad", c.Input("X").dims);
  return absl::OkStatus();
}

void RegisterImageParts(OpRegistry& registry) {
  registry.Add(ImageSchema("channel_stats",
                           "Per channel, mean and variance, and how many rows "
                           "there are. Of none: 0.")
                   .Out("Mean", "f32", "[C]")
                   .Out("Variance", "f32", "[C]: biased")
                   .Out("Count", "f32", "[]")
                   .Attr("saves", int64_t{0},
                         "why the norm is split: bytes per sample that its "
                         "fusions need not move; 0: it has no other kernel")
                   .Infer(InferChannelStats)
                   .Version(2)
                   .NoGrad()
                   .Internal());
  OpSchema scale_bias = ImageSchema(
      "scale_bias",
      "Y = (X - Mean) / sqrt(Variance + epsilon) * Scale + Bias per channel.");
  AddAffine(scale_bias);
  AddEpsilon(scale_bias)
      .Out("Y", "T", "dims of X")
      .Infer(InferScaleBias)
      .NoGrad();
  registry.Add(std::move(scale_bias));
  OpSchema reduce = ImageSchema(
      "bn_grad_reduce",
      "Per channel, BiasGrad = sum of YGrad and ScaleGrad = sum of YGrad * (X "
      "- BatchMean) / sqrt(BatchVariance + epsilon).");
  AddEpsilon(reduce)
      .In("YGrad", "T", "dims of X")
      .In("BatchMean", "f32", "[C]")
      .In("BatchVariance", "f32", "[C]")
      .Out("ScaleGrad", "f32", "[C]")
      .Out("BiasGrad", "f32", "[C]")
      .Lossy("X")
      .Infer(InferGradReduce)
      .NoGrad()
      .Internal();
  registry.Add(std::move(reduce));
  registry.Add(
      ImageSchema("bn_grad_apply", "XGrad = A * YGrad + B * (X - Mean) + C0.")
          .In("YGrad", "T", "dims of X")
          .In("Mean", "f32", "[C]")
          .In("A", "f32", "[C]")
          .In("B", "f32", "[C]")
          .In("C0", "f32", "[C]")
          .Out("XGrad", "T", "dims of X")
          .Lossy("X")
          .Infer(InferGradApply)
          .Version(2)
          .NoGrad()
          .Internal());
}

// ---- Its parts on vectors.

// Lists of one length: [C] per norm, but scalars in Count; out as in.
absl::Status InferCombine(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectWord(c, "of", {"totals", "statistics"}));
  HT_RETURN_IF_ERROR(ExpectGroupSize(c));
  if (c.Int("replicas") < 1) {
    return AttrMismatch(c, "replicas", "1 rank or more");
  }
  HT_RETURN_IF_ERROR(ExpectWord(c, "order", {"ranks", "tree"}));
  const auto means = c.InputList("Mean");
  if (means.empty()) return SlotMismatch(c, "Mean", "one value or more");
  for (const char* slot : {"Mean", "Variance", "Count"}) {
    const auto list = c.InputList(slot);
    if (list.size() != means.size()) {
      return c.Error("slot ", slot, ": expected ", means.size(),
                     " values, one per value of Mean, found ", list.size());
    }
    if (c.OutputCount(slot) != static_cast<int>(means.size())) {
      return c.Error("slot ", slot, ": expected ", means.size(),
                     " outputs, one per value of Mean, found ",
                     c.OutputCount(slot), "; name each output");
    }
    const bool scalar = slot == absl::string_view("Count");
    for (size_t i = 0; i < list.size(); ++i) {
      const bool fits =
          scalar ? list[i].dims.empty()
                 : list[i].dims.size() == 1 && list[i].dims == means[i].dims;
      if (!fits) {
        return MemberMismatch(c, slot, static_cast<int>(i),
                              scalar ? "a scalar, dims []" : "[C], as in Mean");
      }
      c.SetOutput(slot, list[i].dims, i);
    }
  }
  return absl::OkStatus();
}

absl::Status InferCoefficients(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectEpsilon(c));
  HT_RETURN_IF_ERROR(ExpectVectors(
      c, {"Scale", "BatchVariance", "ScaleGradSum", "BiasGradSum"}, {"Count"}));
  for (const char* slot : {"A", "B", "C0"}) {
    c.SetOutput(slot, c.Input("Scale").dims);
  }
  return absl::OkStatus();
}

absl::Status InferRunningStats(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectRange(c, "momentum", 0, 1));
  HT_RETURN_IF_ERROR(
      ExpectVectors(c, {"OldMean", "OldVariance", "BatchMean", "BatchVariance"},
                    {"FoundInf"}));
  c.SetOutput("Mean", c.Input("OldMean").dims);
  c.SetOutput("Variance", c.Input("OldMean").dims);
  return absl::OkStatus();
}

OpSchema VectorSchema(absl::string_view name, absl::string_view doc,
                      absl::Status (*infer)(InferContext&)) {
  OpSchema schema(name);
  schema.Doc(doc)
      .Infer(infer)
      .NoGrad()
      .Internal()
      .Costs(Work::kNorm)
      .Amp(AmpClass::kGray);
  return schema;
}

void RegisterVectorParts(OpRegistry& registry) {
  OpSchema combine = VectorSchema(
      "combine_stats",
      "Statistics of all ranks' elements from each rank's, combined pairwise "
      "in the order of the ranks: with n = Count, d = the difference of means "
      "and M2 = n * Variance, M2 of two is the sum of both + d * d * n1 * n2 / "
      "(n1 + n2). A list, so that many norms are one message.",
      InferCombine);
  combine
      .Attr("of", std::string("statistics"),
            "totals or statistics: what the message is")
      .Attr("order", std::string("ranks"),
            "tree: as all_reduce in that order, each pair rounded to f32");
  AddGroupSize(combine).Attr("replicas", int64_t{1},
                             "so many consecutive ranks have the same "
                             "statistics: one of them counts");
  const auto add_lists = [&combine](bool in) {
    const auto add = [&](absl::string_view slot, absl::string_view doc) {
      in ? combine.In(slot, "f32", doc, kList)
         : combine.Out(slot, "f32", doc, kList);
    };
    add("Mean", "[C] per norm");
    add("Variance", "[C] per norm: biased");
    add("Count", "[] per norm: rows per channel");
  };
  add_lists(true);
  add_lists(false);
  registry.Add(std::move(combine));
  OpSchema coefficients = VectorSchema(
      "bn_grad_coefficients",
      "What makes XGrad = A * YGrad + B * (X - BatchMean) + C0. With r = 1 / "
      "sqrt(BatchVariance + epsilon): A = Scale * r, B = -A * r * "
      "ScaleGradSum / Count, C0 = -A * BiasGradSum / Count.",
      InferCoefficients);
  AddEpsilon(coefficients)
      .In("Scale", "f32", "[C]")
      .In("BatchVariance", "f32", "[C]")
      .In("ScaleGradSum", "f32", "[C]: of all ranks")
      .In("BiasGradSum", "f32", "[C]: of all ranks")
      .In("Count", "f32", "[]: rows of all ranks")
      .Out("A", "f32", "[C]")
      .Out("B", "f32", "[C]")
      .Out("C0", "f32", "[C]")
      .Version(2);
  registry.Add(std::move(coefficients));
}

void RegisterRunningStats(OpRegistry& registry) {
  registry.Add(VectorSchema("running_stats",
                            "momentum * old + (1 - momentum) * batch, or old "
                            "where the step is rejected.",
                            InferRunningStats)
                   .In("OldMean", "f32", "[C]")
                   .In("OldVariance", "f32", "[C]")
                   .In("BatchMean", "f32", "[C]")
                   .In("BatchVariance", "f32", "[C]: biased")
                   .In("FoundInf", "bool", "[]: the step is rejected")
                   .Out("Mean", "f32", "[C]")
                   .Out("Variance", "f32", "[C]")
                   .Attr("momentum", 0.9, "weight of the old values")
                   .MayAlias("Mean", "OldMean")
                   .MayAlias("Variance", "OldVariance")
                   .Guarded());
}

}  // namespace

void RegisterNorm(OpRegistry& registry) {
  RegisterWhole(registry);
  RegisterImageParts(registry);
  RegisterVectorParts(registry);
  RegisterRunningStats(registry);
}

}  // namespace ops
}  // namespace halftone
