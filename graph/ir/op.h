// Op and Value: plain records, changed only through their Block, which keeps
// the use lists and the order.
#ifndef HALFTONE_GRAPH_IR_OP_H_
#define HALFTONE_GRAPH_IR_OP_H_

#include <cstdint>
#include <experimental/propagate_const>
#include <initializer_list>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "graph/ir/attr.h"
#include "graph/ir/decision.h"
#include "graph/ir/ids.h"

namespace halftone {

class Block;
class OpSchema;

// What an op's slots hold, in the schema's slot order: slot s holds items
// [end(s-1), end(s)). An absent optional slot is empty.
template <typename T>
class Slots {
 public:
  Slots() = default;
  Slots(std::initializer_list<std::initializer_list<T>> slots) {
    for (const std::initializer_list<T>& slot : slots) AddSlot(slot);
  }
  absl::Span<const T> all() const { return values_; }
  absl::Span<const int32_t> ends() const { return ends_; }
  int slots() const { return static_cast<int>(ends_.size()); }
  int begin(int slot) const { return slot == 0 ? 0 : ends_[slot - 1]; }
  int end(int slot) const { return ends_[slot]; }
  absl::Span<const T> slot(int s) const {
    return all().subspan(begin(s), end(s) - begin(s));
  }
  bool has(int s) const { return begin(s) < end(s); }
  // The slot of the value at flat position `i`.
  int SlotOf(int i) const {
    int s = 0;
    while (ends_[s] <= i) ++s;
    return s;
  }
  void Clear() {
    values_.clear();
    ends_.clear();
    values_.shrink_to_fit();
    ends_.shrink_to_fit();
  }
  // Appends an item to the slot that EndSlot ends.
  void Add(T item) { values_.push_back(item); }
  void EndSlot() { ends_.push_back(static_cast<int32_t>(values_.size())); }
  template <typename Items>
  void AddSlot(const Items& items) {
    values_.insert(values_.end(), items.begin(), items.end());
    EndSlot();
  }

 private:
  friend class Block;
  absl::InlinedVector<T, 4> values_;
  absl::InlinedVector<int32_t, 4> ends_;
};
using SlotValues = Slots<ValueId>;

// What walks over a program look at comes first: with a million ops, a cache
// line is a cost.
struct Op {
  OpId id;
  NameId name;
  const OpSchema* schema = nullptr;
  // Line in the model file; 0 if a pass made it.
  int32_t line = 0;
  Role role = Role::kForward;
  bool erased = false;
  SlotValues inputs;
  SlotValues outputs;
  Decision decision;
  // Where each input stands in its value's `uses`; the block's own.
  absl::InlinedVector<int32_t, 4> use_indices;
  AttrList attrs;
  // Names of the ops that this one replaced or was made for (frozen names).
  absl::InlinedVector<NameId, 2> origins;
  // A fusion's closed body; null for every other op. Who changes it changes
  // the op.
  std::experimental::propagate_const<std::unique_ptr<Block>> body;

  // One value of a slot that holds exactly one.
  ValueId in(int slot) const { return inputs.slot(slot)[0]; }
  ValueId out(int slot) const { return outputs.slot(slot)[0]; }
};

// One reader of a value: the op and the flat position among its inputs.
struct Use {
  OpId op;
  int32_t position = 0;
  friend bool operator==(const Use& a, const Use& b) {
    return a.op == b.op && a.position == b.position;
  }
};

// Where a value comes from.
enum class Definition : uint8_t {
  kFeed,      // fed per step; in a fusion body: an argument
  kConstant,  // `index` is the ConstantId
  kCell,      // the cell's value at the start of the step; CellId
  kOp,        // `index` is the OpId, `result` the flat output position
};

struct Value {
  ValueId id;
  NameId name;
  TypeId type;
  Definition definition = Definition::kFeed;
  bool erased = false;
  int32_t index = -1;
  int32_t result = 0;
  // Readers in no particular order (deterministic, though); commits and
  // results of the entry are not uses.
  absl::InlinedVector<Use, 2> uses;

  OpId op() const {
    return definition == Definition::kOp ? OpId(index) : OpId();
  }
  CellId cell() const {
    return definition == Definition::kCell ? CellId(index) : CellId();
  }
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_OP_H_
