// A Block is a list of ops in SSA form with their values: the content of an
// entry or of a fusion's body. It owns order, names and use lists.
#ifndef HALFTONE_GRAPH_IR_BLOCK_H_
#define HALFTONE_GRAPH_IR_BLOCK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/ir/chunked_vector.h"
#include "graph/ir/ids.h"
#include "graph/ir/name_map.h"
#include "graph/ir/op.h"
#include "graph/ir/type.h"
#include "graph/ir/type_table.h"
#include "graph/ir/unique_names.h"

namespace halftone {

class Program;

class Block {
 public:
  // `program` owns the names and types and outlives the block, which may hold
  // more than so many ops and values; an entry's are kMany.
  explicit Block(Program* program, int32_t ops = 4, int32_t values = 8);
  static constexpr int32_t kMany = 1 << 30;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  Program& program() const { return *program_; }

  // ---- Values. A name is unique among the block's live values.
  // A feed of an entry or an argument of a body; order of creation counts.
  ValueId AddFeed(absl::string_view name, const TensorType& type);
  ValueId AddFeed(NameId name, TypeId type);
  // The value of a cell at the start of the step, one per cell and block;
  // made on first demand. Its name is the cell's.
  ValueId CellValue(CellId cell);
  // That value, or an invalid id if the block does not read the cell.
  ValueId FindCellValue(CellId cell) const;
  ValueId ConstantValue(ConstantId constant);
  // Live feeds, in order of creation.
  std::vector<ValueId> Feeds() const;

  const Value& value(ValueId id) const { return values_[id.index()]; }
  const TensorType& type(ValueId id) const { return types_[type_id(id)]; }
  // Equal types have equal ids.
  TypeId type_id(ValueId id) const { return value(id).type; }
  DType dtype(ValueId id) const { return type(id).dtype; }
  absl::string_view name(ValueId id) const;
  // The live value of that name, or an invalid id.
  ValueId FindValue(absl::string_view name) const;
  ValueId FindValue(NameId name) const { return value_by_name_.Find(name); }
  // Changes the stored type (a pass that knows what it does; the verifier
  // checks it against the schema afterwards).
  void SetType(ValueId id, const TensorType& type);
  void SetType(ValueId id, TypeId type);
  void RenameValue(ValueId id, absl::string_view name);
  void RenameValue(ValueId id, NameId name);

  // ---- Ops.
  // Where a new op goes.
  struct Position {
    OpId before;  // invalid: at the end
  };
  static Position End() { return {}; }
  static Position Before(OpId op) { return {op}; }
  Position After(OpId op) const { return {next(op)}; }

  // Adds an op with its input slots (schema order) and one output value per
  // given name and type. Schema rules are not checked here: builders
  // (graph/schema/op_builder.h) infer, the verifier proves. An invalid op
  // name takes the first output's. An op name already in use gets the suffix
  // ".<n>"; a value name already in use is a bug of the caller: use
  // UniqueValueName.
  struct OutputSpec {
    NameId name;
    TypeId type;
  };
  using Outputs = Slots<OutputSpec>;
  OpId AddOp(const OpSchema* schema, NameId name, SlotValues inputs,
             const Outputs& outputs, Attrs attrs, Position position);
  // Adds a copy of an op of another block of the same program, body left out,
  // at the end: under its name and its outputs', on the inputs that `input`
  // gives for its own.
  OpId CopyOp(const Op& op, const Block& from,
              absl::FunctionRef<ValueId(ValueId)> input);
  // The same for an op whose record is then erased: decision and origins are
  // moved.
  OpId TakeOp(Op& op, const Block& from,
              absl::FunctionRef<ValueId(ValueId)> input);
  // Removes an op whose outputs have no readers left (checked). What came
  // after it stays known, so that a walk can go on from it.
  void EraseOp(OpId id);
  // Removes a feed, constant or cell value, or one output of an op (a member
  // of a list), that has no readers (checked).
  void EraseValue(ValueId id);
  void MoveOp(OpId id, Position position);

  const Op& op(OpId id) const { return ops_[id.index()]; }
  // For what no edit below does. It counts as an edit.
  Op& mutable_op(OpId id) {
    Touch(id);
    return ops_[id.index()];
  }
  // The program's edit() when the op was last edited: made, moved, or anything
  // about it, its outputs or its inputs' types and definitions changed.
  uint64_t edit(OpId id) const { return links_[id.index()].edit; }
  // What KindOf (graph/schema/type_key.h) made of the op, kept until an edit
  // of what it is made of; 0: nothing yet.
  uint64_t kind(OpId id) const { return links_[id.index()].kind; }
  void SetKind(OpId id, uint64_t kind) const { links_[id.index()].kind = kind; }
  // That of the op's record, for walks that look at no more than this.
  const OpSchema* schema(OpId id) const { return links_[id.index()].schema; }
  // Where each of the op's inputs stands in its value's `uses`.
  using UseIndices = CompactList<int32_t, 3>;
  const UseIndices& use_indices(OpId id) const {
    return use_indices_[id.index()];
  }
  absl::string_view name(const Op& op) const;
  OpId FindOp(absl::string_view name) const;
  OpId FindOp(NameId name) const { return op_by_name_.Find(name); }
  OpId first() const { return first_; }
  OpId last() const { return last_; }
  OpId next(OpId id) const { return links_[id.index()].next; }
  OpId previous(OpId id) const { return links_[id.index()].previous; }
  int num_ops() const { return live_ops_; }
  int num_values() const { return live_values_; }
  // How many of them have the schema.
  int CountOf(const OpSchema* schema) const;
  // Those of all schemas that the block ever held, in no order.
  struct SchemaCount {
    const OpSchema* schema;
    int32_t count;
  };
  absl::Span<const SchemaCount> counts() const { return counts_; }
  // Those, in order.
  std::vector<OpId> OpsOf(const OpSchema* schema) const;
  // Whether it has an op of a schema that is one of those.
  bool HasOpOf(absl::FunctionRef<bool(const OpSchema*)> is_one) const;
  // Ids are below these, erased ones included: sizes for side tables.
  int op_limit() const { return ops_.size(); }
  int value_limit() const { return values_.size(); }
  // Live ops in order. Do not erase or add while iterating over ops(); walk
  // first() / next(id) by hand for that, or take the vector.
  std::vector<OpId> ops() const;

  // ---- Edits. Use lists follow.
  // Makes the op one of another schema with the same slots (a pass that knows
  // what it does; the verifier checks).
  void SetSchema(OpId op, const OpSchema* schema);
  void SetInput(OpId op, int position, ValueId value);
  // All readers of `from` read `to`; gradients, commits and results too if the
  // block is an entry's, body_results if it is a fusion's body. O(readers +
  // gradients + commits + results).
  void ReplaceUses(ValueId from, ValueId to);
  // Replaces the values of one input slot (any new number of values).
  void SetInputSlot(OpId op, int slot, absl::Span<const ValueId> values);
  // Adds one value to an output slot that has none (an optional or list
  // output that a pass switches on); returns it.
  ValueId AddOutput(OpId op, int slot, absl::string_view name,
                    const TensorType& type);
  ValueId AddOutput(OpId op, int slot, NameId name, TypeId type);
  // Hands a value's definition to another op's (empty-slot) output: after it
  // `value` is what `op` defines at the end of `slot`; its old definition
  // must be an op, which loses that output slot's value.
  void MoveOutput(ValueId value, OpId op, int slot);
  // Hands a value's definition to a cell of its type, of which the block has no
  // value yet: after it `value` is that one, under the cell's name; its old
  // definition must be an op, which loses that output slot's value.
  void MoveToCell(ValueId value, CellId cell);

  // `base`, or base.1, base.2 ... : no live value has that name.
  std::string UniqueValueName(absl::string_view base) const;
  NameId UniqueValueName(NameId base) const;
  NameId UniqueOpName(NameId base) const {
    return FindOp(base).valid() ? NumberedOpName(base) : base;
  }

  // ---- Results of a fusion's body; unused in entries.
  std::vector<ValueId>& body_results() { return body_results_; }
  const std::vector<ValueId>& body_results() const { return body_results_; }

  // Position of each live op in order, by op id; -1 for erased ones. O(n).
  std::vector<int32_t> Numbering() const;

 private:
  friend class Entry;
  friend class BlockDamage;  // of tests: what no edit may do
  ValueId NewValue(NameId name, TypeId type, Definition definition,
                   int32_t index, int32_t result = 0);
  // What calls it touches the ops that the change concerns.
  Value& mutable_value(ValueId id) { return values_[id.index()]; }
  void Touch(OpId id);
  // The same where the op has its kind still: another place, or an input of the
  // same type with another definition.
  void TouchPlace(OpId id);
  void TouchInput(OpId id, TypeId before, TypeId after);
  void LinkIn(OpId id, Position position);
  void Unlink(OpId id);
  // What follows an op, or the block's beginning.
  OpId& NextOf(OpId id) {
    return id.valid() ? links_[id.index()].next : first_;
  }
  OpId& PreviousOf(OpId id) {
    return id.valid() ? links_[id.index()].previous : last_;
  }
  // Visits each live op with its place in the order. An op says where the next
  // one is: from both ends, a step need not wait for the other end's.
  template <typename Visit>
  void VisitFromBothEnds(Visit visit) const;
  // Adds a reader of the value; its index among the uses.
  int32_t Enlist(ValueId value, Use use);
  void AddUse(ValueId value, OpId op, int position);
  void DropUse(OpId op, int position);
  void InsertResult(Op& op, int slot, ValueId value);
  void RemoveResult(Op& op, int position);
  void RenumberResults(const Op& op, int from);
  void ForgetName(Value& value);
  void KeepCellValue(CellId cell, ValueId value);
  int32_t& CountOfSchema(const OpSchema* schema);
  OpId AddCopy(const Op& op, const Block& from,
               absl::FunctionRef<ValueId(ValueId)> input);

  NameId NumberedOpName(NameId base) const;

  Program* program_;
  const TypeTable& types_;  // the program's
  // Values an entry holds besides uses (commits, results); set by Entry.
  class Entry* entry_ = nullptr;
  ChunkedVector<Op> ops_;
  ChunkedVector<Value> values_;
  // The order of the ops by op id, their schemas, when each was edited and its
  // kind: apart from their records, so that a walk need not wait for one record
  // to find the next, nor read those that it has no business with.
  struct Link {
    OpId previous, next;
    const OpSchema* schema = nullptr;
    uint64_t edit = 0;
    mutable uint64_t kind = 0;
  };
  ChunkedVector<Link> links_;
  // By op id; of edits alone.
  ChunkedVector<UseIndices> use_indices_;
  OpId first_, last_;
  int live_ops_ = 0;
  int live_values_ = 0;
  absl::InlinedVector<SchemaCount, 2> counts_;  // of live ops
  absl::InlinedVector<ValueId, 4> feeds_;
  NameMap<ValueId> value_by_name_;
  NameMap<OpId> op_by_name_;
  mutable UniqueNames unique_values_, unique_ops_;
  std::vector<ValueId> value_of_cell_;  // by cell id
  absl::flat_hash_map<int32_t, ValueId> value_of_constant_;
  std::vector<ValueId> body_results_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_BLOCK_H_
