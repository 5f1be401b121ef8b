#include "passes/update/clip.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/gradient_names.h"
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
  if (CountOfType(block, "clip_factor") > 0) return false;
  const std::vector<ParameterGradient> gradients = FindGradients(*train);
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
  std::vector<ValueId> clipped;
  for (const ParameterGradient& gradient : gradients) {
    if (gradient.value == gradient.wide) {
      return CompilerBug("gradient ", block.name(gradient.value),
                         " is not unscaled: check-and-unscale must run before");
    }
    const std::string& parameter = program.cell(gradient.parameter).name;
    OpBuilder clip = MakeOp(block, "clip_by_factor", Role::kOptimize);
    clip.In("X", gradient.value)
        .In("Factor", clip_factor)
        .Bind("TOut", DType::kF32)
        .Out("Out", absl::StrCat(GradientName(parameter), ".clipped"));
    HT_ASSIGN_OR_RETURN(clipped.emplace_back(), BuildValue(block, clip));
  }
  SetGradients(clipped, train);
  return true;
}

}  // namespace passes
}  // namespace halftone
