#include "passes/update/check_and_unscale.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/gradient_names.h"
#include "graph/ir/scaler_names.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "passes/differentiate/combine_losses.h"
#include "passes/differentiate/local_count.h"
#include "passes/parallel/gradients.h"
#include "passes/parallel/totals.h"
#include "passes/rewrite/rewrite.h"
#include "passes/update/gradient_merge.h"
#include "passes/update/norm_statistics.h"
#include "passes/update/running_statistics.h"

namespace halftone {
namespace passes {
namespace {

// The scale of what is reduced: 1 where parts of the loss have their own.
absl::StatusOr<ValueId> ScaleOf(Block& block) {
  if (!HasScalers(block)) return WellKnownValue(&block, kLossScaling);
  Constant one;
  one.name = "@unscaled";
  one.type.dtype = DType::kF32;
  one.values = {1};
  return block.ConstantValue(block.program().AddConstant(std::move(one)).id);
}

// Gradients are sums over micro-batches, made smaller as gradient-merge does.
absl::StatusOr<ValueId> InverseScale(Entry& train, const proto::Dist& dist) {
  Block& block = train.block();
  const bool over_ranks = MeansOverRanks(dist);
  const ValueId count =
      over_ranks ? block.FindValue(kRanks) : train.FindResult(kCount);
  if (!count.valid()) {
    return CompilerBug("train has gradients and no result ", kCount,
                       ": insert-allreduce must run before");
  }
  HT_ASSIGN_OR_RETURN(const ValueId scale, ScaleOf(block));
  HT_ASSIGN_OR_RETURN(
      const ValueId largest,
      over_ranks ? RankWeight(block) : WellKnownValue(&block, kLargestCount));
  OpBuilder op = MakeOp(block, "gradient_inv_scale", Role::kLossScale);
  op.In("LossScaling", scale)
      .In("Count", count)
      .In("LargestCount", largest)
      .Attr("gradient_scale", std::string(ScalesBefore(dist) ? "pre" : "post"));
  if (dist.has_gradient_predivide_factor()) {
    op.Attr("predivide", dist.gradient_predivide_factor());
  }
  const int64_t merged_steps = MergedSteps(dist);
  if (merged_steps == 1) {
    op.Out("InvScale", "@inv_scale");
    return BuildValue(block, op);
  }
  op.Out("InvScale", "@inv_scale.unmerged");
  HT_ASSIGN_OR_RETURN(const ValueId unmerged, BuildValue(block, op));
  OpBuilder merged = MakeOp(block, "scale", Role::kLossScale);
  merged.In("X", unmerged)
      .Attr("scale", 1 / MergeScale(merged_steps))
      .Out("Out", "@inv_scale");
  return BuildValue(block, merged);
}

// check_finite and global_norm; returns FoundInf.
absl::StatusOr<ValueId> Check(Entry& train,
                              absl::Span<const ParameterGradient> gradients,
                              ValueId inv_scale) {
  Block& block = train.block();
  std::vector<ValueId> low, f32, stats;
  for (const ParameterGradient& gradient : gradients) {
    (IsLow(block.dtype(gradient.reduced)) ? low : f32)
        .push_back(gradient.reduced);
  }
  // SquaredNorm has Low's before F32's; the sum goes in parameter order.
  std::vector<int64_t> order;
  int64_t next_low = 0, next_f32 = static_cast<int64_t>(low.size());
  for (const ParameterGradient& gradient : gradients) {
    order.push_back(IsLow(block.dtype(gradient.reduced)) ? next_low++
                                                         : next_f32++);
  }
  for (const NormStatistics& norm : FindNormStatistics(block)) {
    stats.push_back(norm.batch_mean);
    stats.push_back(norm.batch_variance);
  }
  // What earlier micro-batches have made of running statistics.
  const PendingStatistics pending(block.program());
  for (CellId cell : pending.all()) stats.push_back(block.CellValue(cell));
  OpBuilder check = MakeOp(block, "check_finite", Role::kLossScale);
  check.In("Low", low)
      .In("F32", f32)
      .In("Stats", stats)
      .In("InvScale", inv_scale)
      .Out("FoundInf", kFoundInf)
      .Out("FirstBad", kFirstBad)
      .Out("SquaredNorm", "@squared_norm");
  HT_ASSIGN_OR_RETURN(const OpId made, check.Build());
  const auto outputs = block.op(made).outputs.all();
  const ValueId found_inf = outputs[0], squared_norm = outputs[2];
  train.results().push_back({kFoundInf, found_inf});
  train.results().push_back({kFirstBad, outputs[1]});
  OpBuilder norm = MakeOp(block, "global_norm", Role::kLossScale);
  norm.In("SquaredNorm", squared_norm)
      .Attr("order", order)
      .Out("Norm", kGradNorm);
  HT_ASSIGN_OR_RETURN(const ValueId grad_norm, BuildValue(block, norm));
  train.results().push_back({kGradNorm, grad_norm});
  return found_inf;
}

absl::StatusOr<ValueId> Unscale(Block& block, const ParameterGradient& gradient,
                                ValueId inv_scale) {
  NameTable& names = block.program().names();
  const NameId parameter = block.program().cell_name(gradient.parameter);
  OpBuilder unscale = MakeOp(block, "unscale", Role::kLossScale);
  unscale.In("X", gradient.wide)
      .In("InvScale", inv_scale)
      .Bind("TOut", DType::kF32)
      .Out("Out", names.Append(GradientName(names, parameter), ".unscaled"));
  return BuildValue(block, unscale);
}

// As the scaler presets compute, beside their fields: Paddle's ratios are f32;
// beyond its ceiling Apex goes on at the ceiling.
double Ratio(const proto::Amp& amp, double ratio) {
  if (!amp.loss_scaling().use_dynamic_loss_scaling()) return 1;
  return amp.scaler() == "paddle" ? static_cast<float>(ratio) : ratio;
}
bool Clamps(const proto::Amp& amp) { return amp.scaler() == "apex"; }

// `scaler`: what the names of its cells end in.
absl::Status UpdateLossScaling(Entry& train, const proto::Amp& amp,
                               ValueId found_inf, const std::string& scaler) {
  const proto::LossScaling& scaling = amp.loss_scaling();
  Block& block = train.block();
  HT_ASSIGN_OR_RETURN(
      const ValueId scale,
      WellKnownValue(&block, absl::StrCat(kLossScaling, scaler)));
  HT_ASSIGN_OR_RETURN(const ValueId good,
                      WellKnownValue(&block, absl::StrCat(kGoodSteps, scaler)));
  HT_ASSIGN_OR_RETURN(const ValueId bad,
                      WellKnownValue(&block, absl::StrCat(kBadSteps, scaler)));
  OpBuilder update = MakeOp(block, "update_loss_scaling", Role::kLossScale);
  update.In("LossScaling", scale)
      .In("GoodSteps", good)
      .In("BadSteps", bad)
      .In("FoundInf", found_inf)
      .Attr("incr_every_n_steps", scaling.incr_every_n_steps())
      .Attr("decr_every_n_nan_or_inf", scaling.decr_every_n_nan_or_inf())
      .Attr("incr_ratio", Ratio(amp, scaling.incr_ratio()))
      .Attr("decr_ratio", Ratio(amp, scaling.decr_ratio()))
      .Attr("floor", scaling.min_loss_scaling())
      .Attr("ceiling", std::isfinite(scaling.max_loss_scaling())
                           ? scaling.max_loss_scaling()
                           : 0.0);
  if (Clamps(amp)) update.Attr("clamp", true);
  const ValueId cells[] = {scale, good, bad};
  const char* const slots[] = {"LossScalingOut", "GoodStepsOut", "BadStepsOut"};
  for (int i = 0; i < 3; ++i) {
    update.Out(slots[i], absl::StrCat(block.name(cells[i]), kNextSuffix));
  }
  HT_ASSIGN_OR_RETURN(const OpId made, update.Build());
  for (int i = 0; i < 3; ++i) {
    const ValueId next = block.op(made).outputs.all()[i];
    train.commits().push_back({block.value(cells[i]).cell(), next});
    train.results().push_back(
        {absl::StrCat(block.name(cells[i]), kNextSuffix), next});
  }
  return absl::OkStatus();
}

// Each part's scale by the part's own gradients.
absl::Status UpdatePartScalings(const Program& program, Entry& train,
                                const proto::Amp& amp) {
  Block& block = train.block();
  const int parts = static_cast<int>(program.loss.parts.size());
  for (int i = 0; i < parts; ++i) {
    const ValueId ranks = train.FindResult(NotFiniteResult(i));
    if (!ranks.valid()) {
      return CompilerBug("part ", program.loss.parts[i].name,
                         " of the loss has a scaler and no result ",
                         NotFiniteResult(i));
    }
    OpBuilder any = MakeOp(block, "logical_or", Role::kLossScale);
    any.In("X", ranks)
        .In("Y", ranks)
        .Out("Out", absl::StrCat(kFoundInf, ".", i));
    HT_ASSIGN_OR_RETURN(const ValueId found_inf, BuildValue(block, any));
    HT_RETURN_IF_ERROR(
        UpdateLossScaling(train, amp, found_inf, ScalerSuffix(i)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> CheckAndUnscale::Run(Program& program) {
  Entry* train = program.FindEntry(kTrainEntry);
  if (train == nullptr || train->FindResult(kFoundInf).valid()) return false;
  Block& block = train->block();
  const std::vector<ParameterGradient> gradients = FindGradients(*train);
  if (gradients.empty()) return false;
  for (const ParameterGradient& gradient : gradients) {
    if (gradient.reduced.valid()) continue;
    return CompilerBug("gradient ", block.name(gradient.local),
                       " is not reduced: insert-allreduce must run before");
  }
  HT_ASSIGN_OR_RETURN(const ValueId inv_scale, InverseScale(*train, dist_));
  HT_ASSIGN_OR_RETURN(const ValueId found_inf,
                      Check(*train, gradients, inv_scale));
  std::vector<ValueId> unscaled;
  for (const ParameterGradient& gradient : gradients) {
    HT_ASSIGN_OR_RETURN(unscaled.emplace_back(),
                        Unscale(block, gradient, inv_scale));
  }
  SetGradients(unscaled, train);
  if (HasScalers(block)) {
    HT_RETURN_IF_ERROR(UpdatePartScalings(program, *train, amp_));
  } else {
    HT_RETURN_IF_ERROR(UpdateLossScaling(*train, amp_, found_inf, ""));
  }
  return true;
}

}  // namespace passes
}  // namespace halftone
