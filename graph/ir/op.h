// Op and Value: plain records, changed only through their Block, which keeps
// the use lists and the order.
#ifndef HALFTONE_GRAPH_IR_OP_H_
#define HALFTONE_GRAPH_IR_OP_H_

#include <cstdint>
#include <experimental/propagate_const>
#include <memory>

#include "graph/ir/attr.h"
#include "graph/ir/compact_list.h"
#include "graph/ir/decision.h"
#include "graph/ir/ids.h"
#include "graph/ir/slots.h"

namespace halftone {

class Block;
class OpSchema;

using SlotValues = Slots<ValueId>;

// Two cache lines, of which the first has what walks over a program look at.
struct alignas(64) Op {
  SlotValues inputs;
  SlotValues outputs;
  const OpSchema* schema = nullptr;
  // A fusion's closed body; null for every other op. Who changes it changes
  // the op.
  std::experimental::propagate_const<std::unique_ptr<Block>> body;
  Attrs attrs;
  OpId id;
  NameId name;
  // Line in the model file; 0 if a pass made it.
  int32_t line = 0;
  Role role = Role::kForward;
  bool erased = false;
  Decision decision;
  // Names of the ops that this one replaced or was made for (frozen names).
  NameList origins;

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

static_assert(sizeof(Op) == 128);

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
  CompactList<Use, 3> uses;

  OpId op() const {
    return definition == Definition::kOp ? OpId(index) : OpId();
  }
  CellId cell() const {
    return definition == Definition::kCell ? CellId(index) : CellId();
  }
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_OP_H_
