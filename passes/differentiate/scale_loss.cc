#include "passes/differentiate/scale_loss.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/gradient_names.h"
#include "graph/ir/scaler_names.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/place.h"
#include "passes/differentiate/combine_losses.h"
#include "passes/differentiate/local_count.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {

absl::StatusOr<bool> ScaleLoss::Run(Program& program) {
  Entry* train = program.FindEntry(kTrainEntry);
  if (train == nullptr || CountOfType(train->block(), "gradient_seed") > 0) {
    return false;
  }
  const std::vector<LossPart>& parts = program.loss.parts;
  if (!per_loss_ || parts.size() < 2) {
    HT_RETURN_IF_ERROR(Seed(program, train->block(), program.loss.var, ""));
    return true;
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    HT_RETURN_IF_ERROR(Seed(program, train->block(), parts[i].weighted,
                            ScalerSuffix(static_cast<int>(i))));
  }
  return true;
}

absl::Status ScaleLoss::Seed(Program& program, Block& block,
                             const std::string& of,
                             const std::string& scaler) const {
  const ValueId loss = block.FindValue(of);
  if (!loss.valid() || block.dtype(loss) != DType::kF32) {
    return ModelError(program.file, ": loss: expected an f32 value, found ",
                      of.empty() ? "none" : of);
  }
  const std::string name = GradientName(of);
  if (const ValueId known = block.FindValue(name); known.valid()) {
    const OpId op = block.value(known).op();
    return ModelError(PlaceOf(program, op.valid() ? block.op(op).line : 0),
                      name, " is the name of the loss's gradient; rename the ",
                      "model's value");
  }

  HT_ASSIGN_OR_RETURN(
      const ValueId scaling,
      WellKnownValue(&block, absl::StrCat(kLossScaling, scaler)));
  Initializer& init = program.cell(block.value(scaling).cell()).init;
  init.kind = Initializer::Kind::kConstant;
  init.a = init_loss_scaling_;
  if (mean_over_ranks_ && !program.loss.denominators.empty()) {
    return ModelError(program.file,
                      ": dist.gradient_mean \"ranks\": the loss has the "
                      "denominator ",
                      program.loss.denominators[0],
                      ", of which each rank takes its samples' share; leave "
                      "gradient_mean or the loss's denominators out");
  }
  ValueId count, largest;
  if (mean_over_ranks_) {
    HT_ASSIGN_OR_RETURN(count, RankWeight(block));
    largest = count;
  } else {
    HT_ASSIGN_OR_RETURN(largest, WellKnownValue(&block, kLargestCount));
    HT_ASSIGN_OR_RETURN(count, LocalCount(program, block));
  }
  Decision decision;
  decision.precision = DType::kF32;
  decision.reason = Reason::kSchema;
  return OpBuilder(&block, "gradient_seed")
      .In("LossScaling", scaling)
      .In("Count", count)
      .In("LargestCount", largest)
      .In("Loss", loss)
      .Out("Out", name)
      .Role(Role::kLossScale)
      .Why(decision)
      .Build()
      .status();
}

}  // namespace passes
}  // namespace halftone
