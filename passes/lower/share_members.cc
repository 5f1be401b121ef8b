#include "passes/lower/share_members.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace passes {
namespace {

// Whether result i of an op is made of member i alone.
bool IsCollective(const OpSchema& schema) {
  return schema.inputs().size() == 1 && schema.outputs().size() == 1 &&
         schema.inputs()[0].contiguous() && schema.outputs()[0].contiguous();
}

// But for the bucket, which is a number alone.
bool DoTheSame(const Op& a, const Op& b) {
  for (const AttrSpec& attr : a.schema->attrs()) {
    if (attr.name != "bucket" && GetAttr(a, attr.name) != GetAttr(b, attr.name))
      return false;
  }
  return true;
}

struct Member {
  OpId collective;
  ValueId result;
};
using Members = absl::flat_hash_map<ValueId, Member>;

bool Share(Block& block, OpId id, Members& members, HeldValues& held) {
  const std::vector<ValueId> inputs(block.op(id).inputs.all().begin(),
                                    block.op(id).inputs.all().end());
  const std::vector<ValueId> outputs(block.op(id).outputs.all().begin(),
                                     block.op(id).outputs.all().end());
  std::vector<ValueId> kept, dropped;
  OpId taker;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Member here{id, outputs[i]};
    const auto [it, fresh] = members.try_emplace(inputs[i], here);
    Member& first = it->second;
    if (!fresh && DoTheSame(block.op(first.collective), block.op(id))) {
      ReplaceValue(block, outputs[i], first.result, held);
      dropped.push_back(outputs[i]);
      taker = first.collective;
      continue;
    }
    first = here;
    kept.push_back(inputs[i]);
  }
  if (dropped.empty()) return false;
  if (kept.empty()) {
    InheritOrigins(block.op(id), block.mutable_op(taker));
    block.EraseOp(id);
    return true;
  }
  for (ValueId result : dropped) block.EraseValue(result);
  block.SetInputSlot(id, 0, kept);
  return true;
}

}  // namespace

bool ShareMembers(Block& block, HeldValues& held) {
  std::vector<const OpSchema*> collectives;
  for (const Block::SchemaCount& entry : block.counts()) {
    if (entry.count > 0 && IsCollective(*entry.schema)) {
      collectives.push_back(entry.schema);
    }
  }
  bool changed = false;
  for (const OpSchema* schema : collectives) {
    Members members;
    for (OpId id : block.OpsOf(schema)) {
      changed |= Share(block, id, members, held);
    }
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
