#include "passes/parallel/gradients.h"

#include "graph/base/dtype.h"
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

std::vector<ParameterGradient> FindGradients(const Entry& entry) {
  const Block& block = entry.block();
  std::vector<ParameterGradient> gradients;
  gradients.reserve(entry.gradients().size());
  for (const GradientStatement& statement : entry.gradients()) {
    ParameterGradient gradient;
    gradient.parameter = statement.parameter;
    gradient.value = gradient.wide = statement.value;
    for (const char* made_by : {"clip_by_factor", "unscale"}) {
      const Op* op = DefinedBy(block, gradient.wide, made_by);
      if (op != nullptr) gradient.wide = op->in(0);
    }
    const Op* cast = DefinedBy(block, gradient.wide, "cast");
    gradient.local = cast != nullptr && IsLow(block.dtype(cast->in(0)))
                         ? cast->in(0)
                         : gradient.wide;
    const Op* reduction = DefinedBy(block, gradient.local, "all_reduce");
    if (reduction != nullptr && IsReduction(*reduction, "gradient")) {
      gradient.reduced = gradient.local;
      gradient.local =
          reduction->inputs.all()[block.value(gradient.reduced).result];
    }
    gradients.push_back(gradient);
  }
  return gradients;
}

void SetGradients(const std::vector<ValueId>& values, Entry* entry) {
  for (size_t i = 0; i < values.size(); ++i) {
    entry->gradients()[i].value = values[i];
  }
}

}  // namespace passes
}  // namespace halftone
