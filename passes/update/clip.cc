#include "passes/update/clip.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_builder.h"
#include "passes/parallel/gradients.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {

absl::StatusOr<bool> Clip::Run(Program& program) {
  Entry* train = program.FindEntry(kTrainEntry);
  if (train == nullptr || global_norm_ <= 0) return false;
  Block& block = train->block();
  if (!OpsOfType(block, "clip_factor").empty()) return false;
  const std::vector<ParameterGradient> gradients = FindGradients(block);
  if (gradients.empty()) return false;
  const ValueId norm = train->FindResult(kGradNorm);
  if (!norm.valid()) {
    return CompilerBug("train has gradients and no result ", kGradNorm,
                       ": check-and-unscale must run before");
  }
  OpBuilder factor = MakeOp(block, "clip_factor", Role::kOptimize);
  factor.In("Norm", norm)
      .Attr("max_norm", global_norm_)
      .Out("Factor", "@clip_factor");
  HT_ASSIGN_OR_RETURN(const ValueId clip_factor, BuildValue(block, factor));
  for (const ParameterGradient& gradient : gradients) {
    const std::string name = GradientName(program.cell(gradient.parameter));
    const ValueId unscaled = block.FindValue(absl::StrCat(name, ".unscaled"));
    if (!unscaled.valid()) {
      return CompilerBug("there is no value ", name, ".unscaled");
    }
    HT_RETURN_IF_ERROR(MakeOp(block, "clip_by_factor", Role::kOptimize)
                           .In("X", unscaled)
                           .In("Factor", clip_factor)
                           .Bind("TOut", DType::kF32)
                           .Out("Out", absl::StrCat(name, ".clipped"))
                           .Build()
                           .status());
  }
  return true;
}

}  // namespace passes
}  // namespace halftone
