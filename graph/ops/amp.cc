// Loss scaling: seed, check, unscale, scale update; clocks; gradient clipping.
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ops/infer_helpers.h"
#include "graph/ops/register_all.h"

namespace halftone {
namespace ops {
namespace {

OpSchema AmpSchema(absl::string_view name, absl::string_view doc) {
  OpSchema schema(name);
  schema.Doc(doc).NoGrad().Internal().Amp(AmpClass::kBlack);
  return schema;
}

// Scalars in, dims of `like` out (or a scalar).
InferFunction FromScalars(std::vector<std::string> scalars, std::string output,
                          std::string like = "") {
  return [scalars, output, like](InferContext& c) -> absl::Status {
    for (const std::string& slot : scalars) {
      HT_RETURN_IF_ERROR(ExpectScalars(c, {slot}));
    }
    c.SetOutput(output, like.empty() ? Dims() : c.Input(like).dims);
    return absl::OkStatus();
  };
}

// ---- The seed of the backward pass and its inverse.

absl::Status InferInvScale(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectWord(c, "gradient_scale", {"pre", "post"}));
  HT_RETURN_IF_ERROR(ExpectRange(c, "predivide", 0, 1e30));
  return FromScalars({"LossScaling", "Count", "LargestCount"}, "InvScale")(c);
}

void RegisterScale(OpRegistry& registry) {
  registry.Add(
      AmpSchema("gradient_seed",
                "Out = LossScaling * Count / LargestCount in every element: "
                "the gradient of the loss; 0 if LargestCount is 0.")
          .In("LossScaling", "f32", "[]")
          .In("Count", "f32", "[]: what the loss is a mean over, this rank")
          .In("LargestCount", "f32", "[]: the most of any rank")
          .In("Loss", "f32", "any dims, any dtype", kShapeOnly)
          .Out("Out", "f32", "dims of Loss")
          .Infer(FromScalars({"LossScaling", "Count", "LargestCount"}, "Out",
                             "Loss")));
  registry.Add(
      AmpSchema("gradient_inv_scale",
                "InvScale = LargestCount / (LossScaling * p * Count): what "
                "turns reduced gradients into those of the mean over all "
                "ranks; 0 if Count is 0. p = 2^-ceil(log2 world) for pre, 1 "
                "for post.")
          .In("LossScaling", "f32", "[]")
          .In("Count", "f32", "[]: summed over all ranks")
          .In("LargestCount", "f32", "[]: the most of any rank")
          .Out("InvScale", "f32", "[]")
          .Attr("gradient_scale", std::string("pre"),
                "pre: the reduction multiplied gradients by p; post: it did "
                "not")
          .Attr("predivide", 0.0,
                "above 0, with pre: p = 1 / predivide instead")
          .Infer(InferInvScale));
}

// What a loss divides by that is no part of its weight n_r: of the same share.
void RegisterShare(OpRegistry& registry) {
  registry.Add(
      AmpSchema("count_share",
                "Out = Total * Count / AllCounts, made in f64 and rounded "
                "once: what this rank divides by, so that the mean of all "
                "ranks' quotients, weighed by Count, is the sum over all ranks "
                "divided by Total. 1 if Total or Count is 0, for nothing was "
                "counted: then a mean over nothing is 0, and so is its "
                "gradient.")
          .In("Total", "f32", "any dims: of all ranks")
          .In("Count", "f32", "[]: samples of this rank")
          .In("AllCounts", "f32", "[]: samples of all ranks")
          .Out("Out", "f32", "dims of Total")
          .Infer(FromScalars({"Count", "AllCounts"}, "Out", "Total")));
}

// ---- The check.

absl::Status InferCheckFinite(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectScalars(c, {"InvScale"}));
  c.SetOutput("FoundInf", {});
  c.SetOutput("FirstBad", {});
  const size_t gradients =
      c.InputList("Low").size() + c.InputList("F32").size();
  c.SetOutput("SquaredNorm", {Dim(static_cast<int64_t>(gradients))});
  return absl::OkStatus();
}

absl::Status InferCombineChecks(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectScalars(c, {"FirstBad"}));
  HT_RETURN_IF_ERROR(ExpectRank(c, "SquaredNorm", 1, "[n]"));
  const Dims& norms = c.Input("SquaredNorm").dims;
  if (c.Int("members") < norms[0].coefficient()) {
    return AttrMismatch(c, "members", "at least n");
  }
  c.SetOutput("FoundInf", {});
  c.SetOutput("FirstBad", {});
  c.SetOutput("SquaredNorm", norms);
  return absl::OkStatus();
}

absl::Status InferGlobalNorm(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectRank(c, "SquaredNorm", 1, "[n]"));
  const Dim& n = c.Input("SquaredNorm").dims[0];
  const std::vector<int64_t>& order = c.Ints("order");
  std::vector<bool> used(order.size(), false);
  bool good = order.empty() || n == Dim(static_cast<int64_t>(order.size()));
  for (const int64_t i : order) {
    good = good && i >= 0 && i < static_cast<int64_t>(order.size()) && !used[i];
    if (good) used[i] = true;
  }
  if (!good) {
    return AttrMismatch(c, "order",
                        absl::StrCat("[], or each of the ", PrintDims(c, {n}),
                                     " places of SquaredNorm once"));
  }
  c.SetOutput("Norm", {});
  return absl::OkStatus();
}

absl::Status InferClipFactor(InferContext& c) {
  HT_RETURN_IF_ERROR(ExpectRange(c, "max_norm", 0, kMaxDouble));
  return FromScalars({"Norm"}, "Factor")(c);
}

void RegisterCheck(OpRegistry& registry) {
  registry.Add(
      AmpSchema("check_finite",
                "Whether a step must be rejected: a gradient times InvScale, a "
                "statistic or the sum of squared norms is not finite.")
          .TypeVar("TL", kLowTypes)
          .In("Low", "TL", "16-bit gradients, any dims", kList)
          .In("F32", "f32", "f32 gradients, any dims", kList)
          .In("Stats", "f32", "batch statistics, any dims", kList)
          .In("InvScale", "f32", "[]")
          .Out("FoundInf", "bool", "[]: reject")
          .Out("FirstBad", "i32",
               "[]: place in Low, F32, Stats of the first with a value that is "
               "not finite; if there is none, but the sum of the squared norms "
               "is not, |Low| + |F32| + |Stats| + the place of the first such "
               "norm or else of the largest; -1 if all is finite")
          .Out("SquaredNorm", "f32",
               "[n], n = |Low| + |F32|: sum of (g * InvScale)^2")
          .Infer(InferCheckFinite)
          .Accumulate(DType::kF32)
          .Layout(LayoutRule::kAny));
  registry.Add(
      AmpSchema("combine_checks",
                "What check_finite would say of whole gradients, from what it "
                "says of each rank's shards: squares are summed in the order "
                "of the ranks.")
          .In("FirstBad", "i32", "[]: this rank's; -1 if all is finite")
          .In("SquaredNorm", "f32", "[n]: of this rank's shards")
          .Out("FoundInf", "bool", "[]: reject")
          .Out("FirstBad", "i32",
               "[]: the least place of any rank; if there is none, but the sum "
               "of all squares is not finite, members + the place of the first "
               "such norm or else of the largest; -1 if all is finite")
          .Out("SquaredNorm", "f32", "[n]")
          .Attr("members", int64_t{0},
                "of the check: |Low| + |F32| + |Stats|; at least n")
          .Infer(InferCombineChecks)
          .Accumulate(DType::kF32));
  registry.Add(AmpSchema("global_norm", "Norm = sqrt(sum of SquaredNorm).")
                   .In("SquaredNorm", "f32", "[n]")
                   .Out("Norm", "f32", "[]")
                   .Attr("order", std::vector<int64_t>(),
                         "in which the members are summed; []: as they stand")
                   .Infer(InferGlobalNorm)
                   .Accumulate(DType::kF32));
  registry.Add(
      AmpSchema("clip_factor", "Factor = min(1, max_norm / (Norm + 1e-6)).")
          .In("Norm", "f32", "[]")
          .Out("Factor", "f32", "[]")
          .RequiredAttr("max_norm", AttrKind::kFloat,
                        "largest norm that is not scaled down")
          .Infer(InferClipFactor));
}

// ---- Gradients and a scalar.

void RegisterScaled(OpRegistry& registry, absl::string_view name,
                    absl::string_view scalar, absl::string_view doc) {
  const std::string factor(scalar);
  registry.Add(AmpSchema(name, doc)
                   .TypeVar("T", kFloatTypes)
                   .TypeVar("TOut", kFloatTypes, "f32")
                   .In("X", "T", "any dims")
                   .In(factor, "f32", "[]")
                   .Out("Out", "TOut", "dims of X")
                   .Infer(FromScalars({factor}, "Out", "X"))
                   .Layout(LayoutRule::kAny)
                   .ElementWise());
}

// Of micro-batches that have one reduction together. In place: a step has one
// sum of each gradient, however many micro-batches.
void RegisterAccumulate(OpRegistry& registry) {
  registry.Add(AmpSchema("accumulate",
                         "Out = scale * (Sum + X), added in f32 and rounded "
                         "once.")
                   .TypeVar("T", kFloatTypes)
                   .TypeVar("TOut", kFloatTypes, "f32")
                   .In("X", "T", "any dims")
                   .In("Sum", "f32", "dims of X")
                   .Out("Out", "TOut", "dims of X")
                   .Attr("scale", 1.0, "factor")
                   .Infer(SameDims({"X", "Sum"}, "Out"))
                   .MayAlias("Out", "Sum")
                   .Accumulate(DType::kF32)
                   .Layout(LayoutRule::kAny)
                   .ElementWise());
}

// Made by backward, too: it computes in the dtype of what it is given.
void RegisterKeepCounted(OpRegistry& registry) {
  registry.Add(AmpSchema("keep_counted",
                         "Out = X, or zeros if Count is 0: a rank that counts "
                         "nothing adds nothing, though the model divides by "
                         "that count.")
                   .TypeVar("T", kFloatTypes)
                   .In("X", "T", "any dims")
                   .In("Count", "f32", "[]: what the loss is a mean over")
                   .Out("Out", "T", "dims of X")
                   .Infer(FromScalars({"Count"}, "Out", "X"))
                   .Layout(LayoutRule::kAny)
                   .ElementWise());
}

// ---- The scale's update and the clocks.

absl::Status InferScaleUpdate(InferContext& c) {
  for (const char* attr : {"incr_every_n_steps", "decr_every_n_nan_or_inf"}) {
    if (c.Int(attr) < 1) return AttrMismatch(c, attr, "1 or more");
  }
  HT_RETURN_IF_ERROR(ExpectRange(c, "incr_ratio", 1, kMaxDouble));
  HT_RETURN_IF_ERROR(ExpectRange(c, "decr_ratio", 0, 1));
  for (const char* slot :
       {"LossScaling", "GoodSteps", "BadSteps", "FoundInf"}) {
    HT_RETURN_IF_ERROR(ExpectScalars(c, {slot}));
  }
  for (const Slot& slot : c.schema().outputs()) c.SetOutput(slot.name, {});
  return absl::OkStatus();
}

OpSchema ScaleUpdateSchema() {
  return AmpSchema("update_loss_scaling",
                   "Bad step: good = 0, bad + 1, at the limit scale = "
                   "max(floor, scale * decr_ratio) and bad = 0. Clean step: "
                   "bad = 0, good + 1, at the limit scale * incr_ratio if that "
                   "is finite and at most ceiling (else unchanged, or the "
                   "ceiling under clamp), and good = 0. Products are made in "
                   "f64 and rounded once.")
      .In("LossScaling", "f32", "[]")
      .In("GoodSteps", "i32", "[]")
      .In("BadSteps", "i32", "[]")
      .In("FoundInf", "bool", "[]")
      .Out("LossScalingOut", "f32", "[]")
      .Out("GoodStepsOut", "i32", "[]")
      .Out("BadStepsOut", "i32", "[]")
      .Attr("incr_every_n_steps", int64_t{1000}, "clean steps in a row")
      .Attr("decr_every_n_nan_or_inf", int64_t{2}, "bad steps in a row")
      .Attr("incr_ratio", 2.0, "1: constant scale")
      .Attr("decr_ratio", 0.5, "1: constant scale")
      .Attr("floor", 1.0, "smallest scale; 0: the smallest normal f32")
      .Attr("ceiling", 16777216.0, "largest scale; 0 or infinity: none")
      .Attr("clamp", false, "a step beyond the ceiling ends there")
      .Infer(InferScaleUpdate);
}

absl::Status InferLocalSteps(InferContext& c) {
  if (c.Int("init_k_steps") < 1) {
    return AttrMismatch(c, "init_k_steps", "1 or more");
  }
  for (const Slot& slot : c.schema().inputs()) {
    HT_RETURN_IF_ERROR(ExpectScalars(c, {slot.name}));
  }
  for (const Slot& slot : c.schema().outputs()) c.SetOutput(slot.name, {});
  return absl::OkStatus();
}

// After Wang and Joshi, Adaptive Communication Strategies (2019), eq. 13, with
// the bounds and the place of init_k_steps of Paddle's Fleet.
OpSchema LocalStepsSchema() {
  return AmpSchema(
             "adapt_local_steps",
             "With s = Attempted + 1 and loss = LossSum / Count: FirstLoss and "
             "FirstRate are loss and LearningRate of the first step with a "
             "finite loss, 0 before. Where s <= begin_step or s - AveragedAt "
             ">= LocalSteps, AveragedAt = s and LocalSteps = ceil(sqrt("
             "FirstRate * loss / (LearningRate * FirstLoss) * init_k_steps)), "
             "at least 1 and at most 16, or what it was if that is no number.")
      .In("Attempted", "i64", "[]: steps before this one")
      .In("AveragedAt", "i64", "[]: the last step that ended a period")
      .In("LocalSteps", "i64", "[]: steps of the period")
      .In("FirstLoss", "f32", "[]")
      .In("FirstRate", "f32", "[]")
      .In("LossSum", "f32", "[]: of all ranks")
      .In("Count", "f32", "[]: of all ranks")
      .In("LearningRate", "f32", "[]")
      .Out("AveragedAtOut", "i64", "[]")
      .Out("LocalStepsOut", "i64", "[]")
      .Out("FirstLossOut", "f32", "[]")
      .Out("FirstRateOut", "f32", "[]")
      .Attr("init_k_steps", int64_t{1}, "steps of the first period")
      .Attr("begin_step", int64_t{1}, "up to it every period is one step")
      .Infer(InferLocalSteps);
}

void RegisterClocks(OpRegistry& registry) {
  registry.Add(LocalStepsSchema());
  registry.Add(AmpSchema("tick", "Out = X + 1.")
                   .In("X", "i64", "[]")
                   .Out("Out", "i64", "[]")
                   .Infer(FromScalars({"X"}, "Out")));
  registry.Add(
      AmpSchema("tick_applied", "Out = X + 1, or X if the step is rejected.")
          .In("X", "i64", "[]")
          .In("FoundInf", "bool", "[]: the step is rejected")
          .Out("Out", "i64", "[]")
          .Infer(FromScalars({"X", "FoundInf"}, "Out"))
          .MayAlias("Out", "X")
          .Guarded());
}

}  // namespace

void RegisterAmp(OpRegistry& registry) {
  RegisterScale(registry);
  RegisterShare(registry);
  RegisterCheck(registry);
  RegisterScaled(registry, "unscale", "InvScale", "Out = X * InvScale in f32.");
  RegisterScaled(registry, "clip_by_factor", "Factor",
                 "Out = X * Factor in f32.");
  RegisterKeepCounted(registry);
  RegisterAccumulate(registry);
  registry.Add(ScaleUpdateSchema());
  RegisterClocks(registry);
}

}  // namespace ops
}  // namespace halftone
