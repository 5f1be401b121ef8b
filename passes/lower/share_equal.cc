#include "passes/lower/share_equal.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "graph/schema/op_schema.h"
#include "graph/schema/type_key.h"

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
    TypeKey key(op.schema);
    key.AddAttrs(op.attrs);
    // Outputs are left out: their types rarely differ where all this agrees.
    return absl::HashOf(key.value(), op.inputs.all());
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

// Whether there may be an op equal to it: it reads what this one reads, so
// that each of these values has another reader.
bool MayHaveEqual(const Block& block, const Op& op) {
  if (op.schema->no_merge() || op.body != nullptr || op.inputs.all().empty()) {
    return false;
  }
  for (ValueId input : op.inputs.all()) {
    if (block.value(input).uses.size() < 2) return false;
  }
  return true;
}

class Sharer {
 public:
  Sharer(Block& block, HeldValues& held)
      : block_(block),
        held_(held),
        first_(0, Hash{&block}, Equal{&block}),
        visited_(block.op_limit()) {}

  bool Run(uint64_t since) {
    const std::vector<bool> candidates =
        since > 0 ? EditedSince(since) : std::vector<bool>();
    bool changed = false;
    for (OpId id = block_.first(); id.valid();) {
      const OpId next = block_.next(id);
      if ((since == 0 || candidates[id.index()]) &&
          MayHaveEqual(block_, block_.op(id))) {
        const auto [it, fresh] = first_.insert(id);
        if (!fresh) Merge(id, *it);
        changed |= !fresh;
      }
      visited_[id.index()] = true;
      id = next;
    }
    return changed;
  }

 private:
  // By op id: it was edited, or reads what an edited one reads, as its equal
  // does.
  std::vector<bool> EditedSince(uint64_t since) const {
    std::vector<bool> edited(block_.op_limit());
    std::vector<bool> seen(block_.value_limit());
    for (OpId id = block_.first(); id.valid(); id = block_.next(id)) {
      if (block_.edit(id) <= since) continue;
      edited[id.index()] = true;
      const auto inputs = block_.op(id).inputs.all();
      if (inputs.empty() || seen[inputs[0].index()]) continue;
      seen[inputs[0].index()] = true;
      for (const Use& use : block_.value(inputs[0]).uses) {
        edited[use.op.index()] = true;
      }
    }
    return edited;
  }
  void Merge(OpId id, OpId first) {
    const Op& op = block_.op(id);
    Op& kept = block_.mutable_op(first);
    for (size_t i = 0; i < op.outputs.all().size(); ++i) {
      const ValueId to = kept.outputs.all()[i];
      // Its only reader, which had no equal, may have one now.
      const auto& uses = block_.value(to).uses;
      const OpId reader = uses.size() == 1 ? uses[0].op : OpId();
      ReplaceValue(block_, op.outputs.all()[i], to, held_);
      if (reader.valid() && visited_[reader.index()] &&
          MayHaveEqual(block_, block_.op(reader))) {
        first_.insert(reader);
      }
    }
    HandOnNames(op, kept);
    block_.EraseOp(id);
  }

  Block& block_;
  HeldValues& held_;
  absl::flat_hash_set<OpId, Hash, Equal> first_;
  std::vector<bool> visited_;  // by op id
};

}  // namespace

bool ShareEqualOps(Block& block, HeldValues& held, uint64_t since) {
  return Sharer(block, held).Run(since);
}

}  // namespace passes
}  // namespace halftone
