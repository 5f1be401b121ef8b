#include "passes/parallel/gradients.h"

#include "absl/strings/str_cat.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {

ValueId ReducedOf(const Block& block, ValueId local) {
  for (const Use& use : block.value(local).uses) {
    const Op& op = block.op(use.op);
    if (IsReduction(op, "gradient")) return op.outputs.all()[use.position];
  }
  return ValueId();
}

std::string GradientName(const Cell& parameter) {
  return absl::StrCat(parameter.name, ".grad");
}

std::vector<ParameterGradient> FindGradients(const Block& block) {
  const Program& program = block.program();
  std::vector<ParameterGradient> gradients;
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    if (cell.kind != CellKind::kParameter || !cell.trainable) continue;
    ParameterGradient gradient;
    gradient.parameter = cell.id;
    gradient.wide = block.FindValue(GradientName(cell));
    if (!gradient.wide.valid()) continue;
    const Op* cast = DefinedBy(block, gradient.wide, "cast");
    if (cast != nullptr && IsLow(block.dtype(cast->in(0)))) {
      gradient.local = cast->in(0);
      const Op* reduction = DefinedBy(block, gradient.local, "all_reduce");
      if (reduction != nullptr && IsReduction(*reduction, "gradient")) {
        gradient.reduced = gradient.local;
        const int position = block.value(gradient.reduced).result;
        gradient.local = reduction->inputs.all()[position];
      }
    } else {
      gradient.local = gradient.wide;
      gradient.reduced = ReducedOf(block, gradient.local);
      if (gradient.reduced.valid()) gradient.wide = gradient.reduced;
    }
    gradients.push_back(gradient);
  }
  return gradients;
}

}  // namespace passes
}  // namespace halftone
