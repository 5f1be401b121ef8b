#include "passes/rewrite/reached.h"

#include "graph/base/dtype.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace passes {

bool IsTrainable(const Block& block, ValueId value) {
  const Value& v = block.value(value);
  if (v.definition != Definition::kCell) return false;
  const Cell& cell = block.program().cell(v.cell());
  return cell.kind == CellKind::kParameter && cell.trainable &&
         IsFloat(cell.type.dtype);
}

std::vector<bool> ReachedByParameters(const Block& block) {
  std::vector<bool> reached(block.value_limit());
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (op.role != Role::kForward || !op.schema->has_grad()) continue;
    bool any = false;
    for (ValueId input : op.inputs.all()) {
      if (IsTrainable(block, input)) reached[input.index()] = true;
      any = any || reached[input.index()];
    }
    if (!any) continue;
    for (ValueId output : op.outputs.all()) {
      if (IsFloat(block.dtype(output))) reached[output.index()] = true;
    }
  }
  return reached;
}

}  // namespace passes
}  // namespace halftone
