// For tests: whether a block's order, names and use lists agree.
#ifndef HALFTONE_GRAPH_IR_BLOCK_CHECKS_H_
#define HALFTONE_GRAPH_IR_BLOCK_CHECKS_H_

#include <map>
#include <string>

#include "graph/ir/block.h"

namespace halftone {

// Empty if all is well, else the first disagreement.
inline std::string Inconsistency(const Block& block) {
  const auto at = [&block](const Op& op) {
    return " at op " + std::string(block.name(op));
  };
  // Order.
  int count = 0;
  OpId previous;
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (op.erased || block.previous(id) != previous) return "order" + at(op);
    if (op.schema != block.schema(id)) return "schema" + at(op);
    previous = id;
    ++count;
  }
  if (count != block.num_ops() || previous != block.last()) return "count";
  // Names, definitions and uses, seen from the ops.
  int64_t reads = 0;
  std::map<const OpSchema*, int> counts;
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (block.FindOp(block.name(op)) != id) return "name" + at(op);
    ++counts[op.schema];
    const auto inputs = op.inputs.all();
    for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
      const Value& value = block.value(inputs[i]);
      const int index = block.use_indices(id)[i];
      if (value.erased || index >= static_cast<int>(value.uses.size()) ||
          !(value.uses[index] == Use{id, i})) {
        return "use" + at(op);
      }
      ++reads;
    }
    const auto outputs = op.outputs.all();
    for (int i = 0; i < static_cast<int>(outputs.size()); ++i) {
      const Value& value = block.value(outputs[i]);
      if (value.erased || value.op() != id || value.result != i) {
        return "definition" + at(op);
      }
    }
  }
  for (const auto& [schema, n] : counts) {
    if (block.CountOf(schema) != n) return "count of a schema";
  }
  // Values.
  int values = 0;
  for (int i = 0; i < block.value_limit(); ++i) {
    const Value& value = block.value(ValueId(i));
    const ValueId found = block.FindValue(block.name(value.id));
    if (value.erased ? found == value.id : found != value.id) {
      return "name of value " + std::string(block.name(value.id));
    }
    if (value.erased && !value.uses.empty()) return "uses of an erased value";
    reads -= static_cast<int64_t>(value.uses.size());
    values += value.erased ? 0 : 1;
  }
  if (values != block.num_values()) return "count of values";
  return reads == 0 ? "" : "uses that no op has";
}

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_BLOCK_CHECKS_H_
