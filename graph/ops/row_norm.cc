// Norms of each sample by itself: over its last dims (layer_norm, rms_norm) or
// over groups of its channels (group_norm, instance_norm). What is normalised
// together is a row.
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

// What an op's rows and its affine parameters are.
struct RowNorm {
  Dims statistics;  // of Mean and Variance
  Dims affine;      // of Scale and Bias
};

using Shape = absl::StatusOr<RowNorm> (*)(const InferContext& c);

// Rows are the dims from begin_norm_axis on.
absl::StatusOr<RowNorm> LastDims(const InferContext& c) {
  const Dims& x = c.Input("X").dims;
  HT_ASSIGN_OR_RETURN(const int begin, Axis(c, "begin_norm_axis", x.size()));
  const auto dims = absl::MakeConstSpan(x);
  return RowNorm{{Product(dims.first(begin))}, {Product(dims.subspan(begin))}};
}

absl::Status ExpectImages(const InferContext& c) {
  return ExpectRank(c, "X", 2, kAnyRank, "[N, C, ...]");
}

absl::StatusOr<RowNorm> Groups(const InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectImages(c));
  const Dims& x = c.Input("X").dims;
  const int64_t groups = c.Int("groups");
  if (groups < 1 || !x[1].is_constant() || x[1].coefficient() % groups != 0) {
    return AttrMismatch(
        c, "groups",
        absl::StrCat("a divisor of ", PrintDims(c, {x[1]}),
                     ", the channels of X, ", c.Print(c.Input("X"))));
  }
  return RowNorm{{x[0], Dim(groups)}, {x[1]}};
}

absl::StatusOr<RowNorm> Instances(const InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectImages(c));
  const Dims& x = c.Input("X").dims;
  return RowNorm{{Product(absl::MakeConstSpan(x).first(2))}, {x[1]}};
}

// A member of the family.
struct Member {
  const char* name;
  Shape shape;
  const char *mean, *variance;      // outputs; no mean: null
  const char* bias;                 // null: none
  const char *statistics, *affine;  // dims, for people
  double epsilon;

  std::string grad() const { return absl::StrCat(name, "_grad"); }
};

constexpr char kRowsOfX[] =
    "[the dims of X before begin_norm_axis, multiplied]";
constexpr char kLastOfX[] =
    "[the dims of X from begin_norm_axis on, multiplied]";

constexpr Member kLayerNorm = {"layer_norm", LastDims, "Mean",   "Variance",
                               "Bias",       kRowsOfX, kLastOfX, 1e-5};
constexpr Member kRmsNorm = {"rms_norm", LastDims, nullptr,  "MeanSquare",
                             nullptr,    kRowsOfX, kLastOfX, 1e-6};
constexpr Member kGroupNorm = {"group_norm", Groups,        "Mean", "Variance",
                               "Bias",       "[N, groups]", "[C]",  1e-5};
constexpr Member kInstanceNorm = {"instance_norm", Instances, "SavedMean",
                                  "SavedVariance", "Bias",    "[N * C]",
                                  "[C]",           1e-5};

absl::StatusOr<RowNorm> CheckRowNorm(const InferContext& c,
                                     const Member& member) {
  HT_RETURN_IF_ERROR(
      ExpectRange(c, "epsilon", 0, std::numeric_limits<double>::max()));
  HT_ASSIGN_OR_RETURN(const RowNorm norm, member.shape(c));
  for (const char* slot : {"Scale", "Bias"}) {
    if (c.schema().FindInput(slot) < 0) continue;
    HT_RETURN_IF_ERROR(ExpectDims(
        c, slot, norm.affine,
        absl::StrCat(member.affine, " of X, ", c.Print(c.Input("X")))));
  }
  return norm;
}

InferFunction InferRowNorm(const Member& member) {
  return [member](InferContext& c) -> absl::Status {
    HT_ASSIGN_OR_RETURN(const RowNorm norm, CheckRowNorm(c, member));
    c.SetOutput("Y", c.Input("X").dims);
    if (member.mean != nullptr) c.SetOutput(member.mean, norm.statistics);
    c.SetOutput(member.variance, norm.statistics);
    return absl::OkStatus();
  };
}

InferFunction InferNormGrad(const Member& member) {
  return [member](InferContext& c) -> absl::Status {
    HT_ASSIGN_OR_RETURN(const RowNorm norm, CheckRowNorm(c, member));
    const Dims& x = c.Input("X").dims;
    HT_RETURN_IF_ERROR(ExpectDims(c, "YGrad", x, "those of X"));
    for (const char* slot : {member.mean, member.variance}) {
      if (slot == nullptr) continue;
      HT_RETURN_IF_ERROR(
          ExpectDims(c, slot, norm.statistics, member.statistics));
    }
    c.SetOutput("XGrad", x);
    c.SetOutput("ScaleGrad", norm.affine);
    if (member.bias != nullptr) c.SetOutput("BiasGrad", norm.affine);
    return absl::OkStatus();
  };
}

absl::Status GradRowNorm(GradContext& g, const Member& member) {
  for (const char* slot : {member.mean, member.variance}) {
    if (slot == nullptr || !g.OutGrad(slot).valid()) continue;
    return ModelError(g.block().name(g.op()), " (", member.name, "): slot ",
                      slot,
                      ": expected no gradient, found one; the loss must not "
                      "depend on statistics but through Y");
  }
  OpBuilder builder = g.Emit(member.grad())
                          .AttrsOf(g.op())
                          .In("X", g.Input("X"))
                          .In("YGrad", g.OutGrad("Y"));
  if (g.Has("Scale")) builder.In("Scale", g.Input("Scale"));
  if (member.mean != nullptr) builder.In(member.mean, g.Output(member.mean));
  builder.In(member.variance, g.Output(member.variance))
      .Bind("TX", InputDType(g, "X"));
  std::vector<const char*> slots = {"X"};
  builder.Out("XGrad", g.GradName("X"));
  for (const char* slot : {"Scale", member.bias}) {
    if (slot == nullptr || !g.Has(slot) || !g.Wants(slot)) continue;
    builder.Out(absl::StrCat(slot, "Grad"), g.GradName(slot));
    slots.push_back(slot);
  }
  HT_ASSIGN_OR_RETURN(const OpId op, builder.Build());
  for (size_t i = 0; i < slots.size(); ++i) {
    if (g.Wants(slots[i]))
      g.SetGrad(slots[i], g.block().op(op).outputs.all()[i]);
  }
  return absl::OkStatus();
}

// What lies in groups of channels has images.
LayoutRule LayoutOf(const Member& member) {
  return member.shape == LastDims ? LayoutRule::kRowMajor
                                  : LayoutRule::kChannelsLastOk;
}

OpSchema RowNormSchema(const Member& member, AmpClass amp) {
  OpSchema schema(member.name);
  schema.TypeVar("T", kFloatTypes)
      .TypeVar("TOut", kFloatTypes, "T")
      .In("X", "T", member.shape == LastDims ? "any dims" : "[N, C, ...]")
      .In("Scale", "f32", absl::StrCat(member.affine, "; none: 1"),
          kKeepF32 | kOptional);
  if (member.bias != nullptr) {
    schema.In(member.bias, "f32", "the dims of Scale; none: 0",
              kKeepF32 | kOptional);
  }
  schema.Out("Y", "TOut", "dims of X");
  if (member.mean != nullptr) schema.Out(member.mean, "f32", member.statistics);
  schema
      .Out(member.variance, "f32",
           absl::StrCat(member.statistics,
                        member.mean != nullptr ? ": biased" : ""))
      .Attr("epsilon", member.epsilon,
            absl::StrCat("added to ", member.variance))
      .Infer(InferRowNorm(member))
      .Grad([member](GradContext& g) { return GradRowNorm(g, member); })
      .Costs(Work::kNorm)
      .Amp(amp)
      .Accumulate(DType::kF32)
      .Layout(LayoutOf(member));
  return schema;
}

OpSchema GradSchemaOf(const Member& member, AmpClass amp) {
  OpSchema schema(member.grad());
  schema.Doc(absl::StrCat("The gradients of ", member.name, "."))
      .TypeVar("T", kFloatTypes)
      .TypeVar("TY", kFloatTypes)
      .TypeVar("TX", kFloatTypes, "T")
      .In("X", "T", absl::StrCat("of ", member.name))
      .In("YGrad", "TY", "dims of X")
      .In("Scale", "f32", absl::StrCat("of ", member.name), kOptional);
  if (member.mean != nullptr) schema.In(member.mean, "f32", member.statistics);
  schema.In(member.variance, "f32", member.statistics)
      .Out("XGrad", "TX", "dims of X")
      .Out("ScaleGrad", "f32", "dims of Scale", kOptional);
  if (member.bias != nullptr) {
    schema.Out("BiasGrad", "f32", "dims of Bias", kOptional);
  }
  schema
      .Attr("epsilon", member.epsilon,
            absl::StrCat("added to ", member.variance))
      .Lossy("X")
      .Infer(InferNormGrad(member))
      .NoGrad()
      .Internal()
      .Costs(Work::kNorm)
      .Amp(amp)
      .Accumulate(DType::kF32)
      .Layout(LayoutOf(member));
  return schema;
}

void RegisterLastDims(OpRegistry& registry, const Member& member,
                      absl::string_view doc, int64_t begin, AmpClass amp) {
  OpSchema schema = RowNormSchema(member, amp),
           grad = GradSchemaOf(member, amp);
  for (OpSchema* one : {&schema, &grad}) {
    one->Attr("begin_norm_axis", begin, "the first dim that is normalised");
  }
  registry.Add(std::move(schema.Doc(doc)));
  registry.Add(std::move(grad));
}

}  // namespace

void RegisterRowNorm(OpRegistry& registry) {
  RegisterLastDims(
      registry, kLayerNorm,
      absl::StrCat("Y = (X - Mean) / sqrt(Variance + epsilon) * Scale + Bias, "
                   "with the mean and the variance of each sample's last dims.",
                   kClassOfPaddle),
      1, AmpClass::kBlack);
  RegisterLastDims(
      registry, kRmsNorm,
      absl::StrCat("Y = X / sqrt(MeanSquare + epsilon) * Scale, with the mean "
                   "of the squares of each sample's last dims.",
                   kClassOfAutocast),
      -1, AmpClass::kGray);
  OpSchema group = RowNormSchema(kGroupNorm, AmpClass::kBlack);
  OpSchema group_grad = GradSchemaOf(kGroupNorm, AmpClass::kBlack);
  for (OpSchema* one : {&group, &group_grad}) {
    one->Attr("groups", int64_t{1}, "of channels that lie side by side");
  }
  registry.Add(std::move(group.Doc(absl::StrCat(
      "Y = (X - Mean) / sqrt(Variance + epsilon) * Scale + Bias, with the mean "
      "and the variance of each sample's groups of channels.",
      kClassOfPaddle))));
  registry.Add(std::move(group_grad));
  registry.Add(std::move(
      RowNormSchema(kInstanceNorm, AmpClass::kGray)
          .Doc(absl::StrCat("Y = (X - SavedMean) / sqrt(SavedVariance + "
                            "epsilon) * Scale + Bias, with the mean and "
                            "the variance of each sample's channels.",
                            kClassOfAutocast))));
  registry.Add(GradSchemaOf(kInstanceNorm, AmpClass::kGray));
}

}  // namespace ops
}  // namespace halftone
