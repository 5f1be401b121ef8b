#include "passes/parallel/gradients.h"

#include "graph/base/dtype.h"
#include "graph/schema/op_registry.h"
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
  const OpSchema* const clip = Ops().Find("clip_by_factor");
  const OpSchema* const unscale = Ops().Find("unscale");
  const OpSchema* const cast = Ops().Find("cast");
  const OpSchema* const all_reduce = Ops().Find("all_reduce");
  std::vector<ParameterGradient> gradients;
  gradients.reserve(entry.gradients().size());
  for (const GradientStatement& statement : entry.gradients()) {
    ParameterGradient gradient;
    gradient.parameter = statement.parameter;
    gradient.value = gradient.wide = statement.value;
    for (const OpSchema* schema : {clip, unscale}) {
      const Op* op = DefinedBy(block, gradient.wide, schema);
      if (op != nullptr) gradient.wide = op->in(0);
    }
    const Op* widening = DefinedBy(block, gradient.wide, cast);
    gradient.local = widening != nullptr && IsLow(block.dtype(widening->in(0)))
                         ? widening->in(0)
                         : gradient.wide;
    const Op* reduction = DefinedBy(block, gradient.local, all_reduce);
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
