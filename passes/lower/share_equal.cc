#include "passes/lower/share_equal.h"

#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/types/span.h"
#include "graph/schema/op_schema.h"
#include "passes/lower/share_members.h"

namespace halftone {
namespace passes {
namespace {

bool IsEqual(const Block& block, const Op& a, const Op& b) {
  return a.schema == b.schema && a.attrs == b.attrs &&
         a.inputs.ends() == b.inputs.ends() &&
         a.outputs.ends() == b.outputs.ends() &&
         a.inputs.all() == b.inputs.all() &&
         std::equal(a.outputs.all().begin(), a.outputs.all().end(),
                    b.outputs.all().begin(), [&](ValueId v, ValueId w) {
                      return block.type_id(v) == block.type_id(w);
                    });
}

struct Hash {
  const Block* block;
  size_t operator()(OpId id) const {
    const Op& op = block->op(id);
    // Outputs are left out: their types rarely differ where all this agrees.
    return absl::HashOf(op.schema, op.attrs.identity(), op.inputs.all());
  }
};

struct Equal {
  const Block* block;
  bool operator()(OpId x, OpId y) const {
    return IsEqual(*block, block->op(x), block->op(y));
  }
};

// Whether there may be an op equal to it: it reads what this one reads, so
// that each of these values has another reader.
bool MayHaveEqual(const Block& block, OpId id) {
  if (block.schema(id)->no_merge()) return false;
  const Op& op = block.op(id);
  if (op.body != nullptr || op.inputs.all().empty()) return false;
  for (ValueId input : op.inputs.all()) {
    if (block.value(input).uses.size() < 2) return false;
  }
  return true;
}

// Of that few readers each is compared with each.
constexpr size_t kFew = 16;

bool HaveMany(const Block& block, absl::Span<const ValueId> values) {
  return absl::c_all_of(values, [&](ValueId value) {
    return block.value(value).uses.size() > kFew;
  });
}

// Whether two readers of the value are equal, or may be where it has many.
bool MayHaveEqualReaders(const Block& block, const Value& value) {
  const absl::Span<const Use> uses(value.uses.data(), value.uses.size());
  if (uses.size() > kFew) {
    return absl::c_any_of(uses, [&](const Use& use) {
      return MayHaveEqual(block, use.op) &&
             HaveMany(block, block.op(use.op).inputs.all());
    });
  }
  for (size_t i = 1; i < uses.size(); ++i) {
    for (const Use& other : uses.first(i)) {
      if (other.position == uses[i].position &&
          block.schema(other.op) == block.schema(uses[i].op) &&
          MayHaveEqual(block, other.op) &&
          IsEqual(block, block.op(other.op), block.op(uses[i].op))) {
        return true;
      }
    }
  }
  return false;
}

// Where no two ops are equal none become so: most blocks need no walk over
// their ops. Values lie side by side.
bool MayHaveEqualOps(const Block& block) {
  for (int i = 0; i < block.value_limit(); ++i) {
    const Value& value = block.value(ValueId(i));
    if (value.uses.size() > 1 && MayHaveEqualReaders(block, value)) return true;
  }
  return false;
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
      if ((since == 0 || candidates[id.index()]) && MayHaveEqual(block_, id)) {
        const OpId equal = FindEqual(id);
        if (equal.valid()) Merge(id, equal);
        changed |= equal.valid();
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
  // The use of the input that has the fewest.
  Use RarestUse(OpId id) const {
    const auto inputs = block_.op(id).inputs.all();
    size_t rarest = 0;
    for (size_t i = 1; i < inputs.size(); ++i) {
      if (block_.value(inputs[i]).uses.size() <
          block_.value(inputs[rarest]).uses.size()) {
        rarest = i;
      }
    }
    return {id, static_cast<int32_t>(rarest)};
  }
  // Of an op before it. Its equal reads its rarest input, too, in the same
  // place: of few readers, each is asked; where all inputs have many, a hash
  // table is.
  OpId FindEqual(OpId id) {
    const Op& op = block_.op(id);
    const Use use = RarestUse(id);
    const auto& uses = block_.value(op.inputs.all()[use.position]).uses;
    if (uses.size() > kFew) {
      const auto [it, fresh] = first_.insert(id);
      return fresh ? OpId() : *it;
    }
    for (const Use& other : uses) {
      if (other.position == use.position && visited_[other.op.index()] &&
          IsEqual(block_, block_.op(other.op), op)) {
        return other.op;
      }
    }
    return OpId();
  }
  // Its readers that were visited when it had few: all their inputs may have
  // many now.
  void EnterReaders(const Value& value) {
    for (const Use& use : value.uses) {
      if (!visited_[use.op.index()] || !MayHaveEqual(block_, use.op)) {
        continue;
      }
      const Use rarest = RarestUse(use.op);
      const ValueId input = block_.op(use.op).inputs.all()[rarest.position];
      if (block_.value(input).uses.size() > kFew) first_.insert(use.op);
    }
  }
  void Merge(OpId id, OpId first) {
    const Op& op = block_.op(id);
    Op& kept = block_.mutable_op(first);
    for (size_t i = 0; i < op.outputs.all().size(); ++i) {
      const Value& to = block_.value(kept.outputs.all()[i]);
      const bool few = to.uses.size() <= kFew;
      ReplaceValue(block_, op.outputs.all()[i], to.id, held_);
      if (few && to.uses.size() > kFew) EnterReaders(to);
    }
    InheritOrigins(op, kept);
    block_.EraseOp(id);
  }

  Block& block_;
  HeldValues& held_;
  absl::flat_hash_set<OpId, Hash, Equal> first_;  // all inputs have many uses
  std::vector<bool> visited_;                     // by op id
};

}  // namespace

bool ShareEqualOps(Block& block, HeldValues& held, uint64_t since) {
  if (since == 0 && !MayHaveEqualOps(block)) return false;
  return Sharer(block, held).Run(since);
}

absl::StatusOr<bool> ShareEqual::RunAgain(Program& program, uint64_t since) {
  bool changed = false;
  for (const auto& entry : program.entries()) {
    Block& block = entry->block();
    HeldValues held(*entry);
    uint64_t shared = since;
    while (ShareEqualOps(block, held, shared)) {
      changed = true;
      shared = program.edit();
      // Nothing else makes two members one value; their readers may be equal.
      if (!ShareMembers(block, held)) break;
    }
  }
  return changed;
}

}  // namespace passes
}  // namespace halftone
