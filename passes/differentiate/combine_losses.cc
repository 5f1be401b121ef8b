#include "passes/differentiate/combine_losses.h"

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/gradient_names.h"
#include "graph/ir/scaler_names.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// By number: whatever parts are called, no two names are one.
std::string Of(absl::string_view what, int part) {
  return absl::StrCat(what, ".", part);
}

absl::StatusOr<ValueId> InverseScale(const Program& program, Block& block,
                                     int part) {
  const std::string name = Of("@local_inv_scale", part);
  if (const ValueId known = block.FindValue(name); known.valid()) return known;
  HT_ASSIGN_OR_RETURN(
      const ValueId scale,
      WellKnownValue(&block, absl::StrCat(kLossScaling, ScalerSuffix(part))));
  const LossPart& loss = program.loss.parts[part];
  const ValueId seed = block.FindValue(GradientName(loss.weighted));
  if (!seed.valid()) {
    return CompilerBug("part ", loss.name, " of the loss has no gradient seed");
  }
  OpBuilder op = MakeOp(block, "reciprocal", Role::kLossScale);
  op.In("X", scale).Out("Out", name).At(block.After(block.value(seed).op()));
  return BuildValue(block, op);
}

// `terms`: the parameter's gradients by part.
absl::StatusOr<ValueId> Combine(const Program& program, Block& block,
                                CellId parameter,
                                absl::Span<const ValueId> terms) {
  std::vector<ValueId> unscaled;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!terms[i].valid()) continue;
    HT_ASSIGN_OR_RETURN(const ValueId inverse,
                        InverseScale(program, block, static_cast<int>(i)));
    OpBuilder op = MakeOp(block, "unscale", Role::kLossScale);
    op.In("X", terms[i])
        .In("InvScale", inverse)
        .Bind("TOut", DType::kF32)
        .Out("Out", absl::StrCat(block.name(terms[i]), ".unscaled"))
        .At(block.After(block.value(terms[i]).op()));
    HT_ASSIGN_OR_RETURN(unscaled.emplace_back(), BuildValue(block, op));
  }
  OpBuilder sum = MakeOp(block, "sum", Role::kLossScale);
  sum.In("X", unscaled)
      .Out("Out", GradientName(program.cell(parameter).name))
      // Parts go backward one after the other: the last one's is there last.
      .At(block.After(block.value(unscaled.back()).op()));
  return BuildValue(block, sum);
}

}  // namespace

bool HasScalers(const Block& train) {
  return CountOfType(train, "gradient_seed") > 1;
}

ValueId NotFiniteOf(const Block& train, int part) {
  return train.FindValue(Of("@local_not_finite", part));
}

std::string NotFiniteResult(int part) {
  return absl::StrCat(kNotFinitePrefix, part);
}

absl::Status CheckPart(const Program& program, Block& block, int part,
                       const PartGradients& gradients) {
  HT_ASSIGN_OR_RETURN(const ValueId inverse,
                      InverseScale(program, block, part));
  std::vector<ValueId> low, f32;
  for (ValueId gradient : gradients) {
    if (!gradient.valid()) continue;
    (IsLow(block.dtype(gradient)) ? low : f32).push_back(gradient);
  }
  OpBuilder check = MakeOp(block, "check_finite", Role::kLossScale);
  check.In("Low", low)
      .In("F32", f32)
      .In("InvScale", inverse)
      .Out("FoundInf", Of("@local_found_inf", part))
      .Out("FirstBad", Of("@local_first_bad", part))
      .Out("SquaredNorm", Of("@local_squared_norm", part));
  HT_ASSIGN_OR_RETURN(const ValueId found_inf, BuildValue(block, check));
  OpBuilder flag = MakeOp(block, "cast", Role::kLossScale);
  flag.In("X", found_inf)
      .Attr("to", DType::kF32)
      .Out("Out", Of("@local_not_finite", part));
  return flag.Build().status();
}

absl::Status CombineParts(const Program& program, Entry& train,
                          absl::Span<const PartGradients> gradients) {
  Block& block = train.block();
  for (int i = 0; i < program.num_cells(); ++i) {
    std::vector<ValueId> terms;
    bool any = false;
    for (const PartGradients& part : gradients) {
      const bool has = i < static_cast<int>(part.size()) && part[i].valid();
      terms.push_back(has ? part[i] : ValueId());
      any |= has;
    }
    if (!any) continue;
    HT_ASSIGN_OR_RETURN(const ValueId combined,
                        Combine(program, block, CellId(i), terms));
    train.gradients().push_back({CellId(i), combined});
  }
  return absl::OkStatus();
}

}  // namespace passes
}  // namespace halftone
