#include "passes/differentiate/scale_loss.h"

#include <string>

#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/gradient_names.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "graph/schema/place.h"
#include "passes/differentiate/local_count.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {

absl::StatusOr<bool> ScaleLoss::Run(Program& program) {
  Entry* train = program.FindEntry(kTrainEntry);
  if (train == nullptr) return false;
  Block& block = train->block();
  const ValueId loss = block.FindValue(program.loss.var);
  if (!loss.valid() || block.dtype(loss) != DType::kF32) {
    return ModelError(program.file, ": loss: expected an f32 value, found ",
                      program.loss.var.empty() ? "none" : program.loss.var);
  }
  if (!OpsOfType(block, "gradient_seed").empty()) return false;
  const std::string name = GradientName(program.loss.var);
  if (const ValueId known = block.FindValue(name); known.valid()) {
    const OpId op = block.value(known).op();
    return ModelError(PlaceOf(program, op.valid() ? block.op(op).line : 0),
                      name, " is the name of the loss's gradient; rename the ",
                      "model's value");
  }

  HT_ASSIGN_OR_RETURN(const ValueId scaling,
                      WellKnownValue(&block, kLossScaling));
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
  HT_RETURN_IF_ERROR(OpBuilder(&block, "gradient_seed")
                         .In("LossScaling", scaling)
                         .In("Count", count)
                         .In("LargestCount", largest)
                         .In("Loss", loss)
                         .Out("Out", name)
                         .Role(Role::kLossScale)
                         .Why(decision)
                         .Build()
                         .status());
  return true;
}

}  // namespace passes
}  // namespace halftone
