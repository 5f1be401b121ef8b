#include "passes/lower/share_equal.h"

#include <algorithm>
#include <variant>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace passes {
namespace {

bool SameSlots(const SlotValues& a, const SlotValues& b) {
  if (a.slots() != b.slots()) return false;
  for (int s = 0; s < a.slots(); ++s) {
    if (a.end(s) != b.end(s)) return false;
  }
  return true;
}

struct Hash {
  const Block* block;
  size_t operator()(OpId id) const {
    const Op& op = block->op(id);
    size_t hash = absl::HashOf(op.schema);
    for (const auto& [index, attr] : op.attrs) {
      // absl hashes its own variant, not the standard library's.
      const size_t value =
          std::visit([](const auto& v) { return absl::HashOf(v); }, attr);
      hash = absl::HashOf(hash, index, value);
    }
    for (ValueId input : op.inputs.all()) hash = absl::HashOf(hash, input);
    for (ValueId output : op.outputs.all()) {
      hash = absl::HashOf(hash, block->value(output).type);
    }
    return hash;
  }
};

struct Equal {
  const Block* block;
  bool operator()(OpId x, OpId y) const {
    const Op& a = block->op(x);
    const Op& b = block->op(y);
    return a.schema == b.schema && SameSlots(a.inputs, b.inputs) &&
           SameSlots(a.outputs, b.outputs) &&
           a.inputs.all() == b.inputs.all() && a.attrs == b.attrs &&
           std::equal(a.outputs.all().begin(), a.outputs.all().end(),
                      b.outputs.all().begin(), [&](ValueId v, ValueId w) {
                        return block->value(v).type == block->value(w).type;
                      });
  }
};

}  // namespace

bool ShareEqualOps(Block& block, HeldValues& held) {
  absl::flat_hash_set<OpId, Hash, Equal> first(block.num_ops(), Hash{&block},
                                               Equal{&block});
  bool changed = false;
  for (OpId id = block.first(); id.valid();) {
    const Op& op = block.op(id);
    const OpId next = op.next;
    if (!op.schema->no_merge() && op.body == nullptr &&
        !op.inputs.all().empty()) {
      const auto [it, fresh] = first.insert(id);
      if (!fresh) {
        Op& kept = block.op(*it);
        for (size_t i = 0; i < op.outputs.all().size(); ++i) {
          const ValueId from = op.outputs.all()[i];
          const ValueId to = kept.outputs.all()[i];
          ReplaceValue(block, from, to, held);
        }
        HandOnNames(op, kept);
        block.EraseOp(id);
        changed = true;
      }
    }
    id = next;
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
