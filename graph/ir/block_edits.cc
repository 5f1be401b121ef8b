// The edits of a Block that keep its use lists: a reader knows where it stands
// in its value's list, so that each change of one input is O(1) however many
// readers the value has.
#include "graph/base/check.h"
#include "graph/ir/block.h"
#include "graph/ir/program.h"

namespace halftone {

int32_t Block::Enlist(ValueId id, Use use) {
  HT_CHECK(id.valid() && id.index() < values_.size() && !value(id).erased,
           "an input is not a live value");
  Value& read = mutable_value(id);
  read.uses.push_back(use);
  return static_cast<int32_t>(read.uses.size()) - 1;
}

void Block::AddUse(ValueId id, OpId reader, int position) {
  use_indices_[reader.index()][position] = Enlist(id, {reader, position});
}

void Block::DropUse(OpId reader, int position) {
  Value& read = mutable_value(op(reader).inputs.values_[position]);
  const int32_t index = use_indices(reader)[position];
  const Use last = read.uses.back();
  read.uses[index] = last;
  use_indices_[last.op.index()][last.position] = index;
  read.uses.pop_back();
}

void Block::SetSchema(OpId id, const OpSchema* schema) {
  --CountOfSchema(op(id).schema);
  ++CountOfSchema(schema);
  mutable_op(id).schema = links_[id.index()].schema = schema;
}

void Block::SetInput(OpId id, int position, ValueId value) {
  ValueId& read = ops_[id.index()].inputs.values_[position];
  if (read == value) return;
  const TypeId before = type_id(read);
  DropUse(id, position);
  read = value;
  AddUse(value, id, position);
  TouchInput(id, before, type_id(value));
}

void Block::ReplaceUses(ValueId from, ValueId to) {
  if (from == to) return;
  for (const Use& use : value(from).uses) {
    ops_[use.op.index()].inputs.values_[use.position] = to;
    AddUse(to, use.op, use.position);
    TouchInput(use.op, type_id(from), type_id(to));
  }
  mutable_value(from).uses.clear();
  for (ValueId& result : body_results_) {
    if (result == from) result = to;
  }
  if (entry_ == nullptr) return;
  for (GradientStatement& gradient : entry_->gradients()) {
    if (gradient.value == from) gradient.value = to;
  }
  for (CommitStatement& commit : entry_->commits()) {
    if (commit.value == from) commit.value = to;
  }
  for (Result& result : entry_->results()) {
    if (result.value == from) result.value = to;
  }
}

void Block::SetInputSlot(OpId id, int slot, absl::Span<const ValueId> values) {
  Op& reader = mutable_op(id);
  // A copy: `values` may be this very slot, or another one of this op.
  const std::vector<ValueId> fresh(values.begin(), values.end());
  const int begin = reader.inputs.begin(slot);
  const int old_end = reader.inputs.end(slot);
  for (int i = begin; i < old_end; ++i) DropUse(id, i);
  reader.inputs.Replace(slot, fresh);
  UseIndices& indices = use_indices_[id.index()];
  indices.erase(begin, old_end);
  indices.insert(begin, fresh.size(), 0);
  const absl::Span<const ValueId> all = reader.inputs.all();
  const int end = reader.inputs.end(slot);
  for (int i = end; i < static_cast<int>(all.size()); ++i) {
    mutable_value(all[i]).uses[indices[i]].position = i;
  }
  for (int i = begin; i < end; ++i) AddUse(all[i], id, i);
}

void Block::InsertResult(Op& op, int slot, ValueId id) {
  const int position = op.outputs.end(slot);
  op.outputs.Insert(slot, id);
  mutable_value(id).definition = Definition::kOp;
  mutable_value(id).index = op.id.index();
  RenumberResults(op, position);
}

void Block::RemoveResult(Op& op, int position) {
  op.outputs.Remove(position);
  RenumberResults(op, position);
}

void Block::RenumberResults(const Op& op, int from) {
  const absl::Span<const ValueId> all = op.outputs.all();
  for (int i = from; i < static_cast<int>(all.size()); ++i) {
    mutable_value(all[i]).result = i;
  }
}

ValueId Block::AddOutput(OpId id, int slot, absl::string_view name,
                         const TensorType& type) {
  return AddOutput(id, slot, program_->InternName(name),
                   program_->Intern(type));
}

ValueId Block::AddOutput(OpId id, int slot, NameId name, TypeId type) {
  const ValueId output = NewValue(name, type, Definition::kOp, id.index());
  InsertResult(mutable_op(id), slot, output);
  return output;
}

void Block::MoveOutput(ValueId id, OpId to, int slot) {
  HT_CHECK(value(id).definition == Definition::kOp,
           "moved a value that no op defines");
  RemoveResult(mutable_op(value(id).op()), value(id).result);
  InsertResult(mutable_op(to), slot, id);
  for (const Use& use : value(id).uses) TouchPlace(use.op);
}

void Block::MoveToCell(ValueId id, CellId cell) {
  HT_CHECK(value(id).definition == Definition::kOp,
           "moved a value that no op defines");
  HT_CHECK(!FindCellValue(cell).valid() &&
               type_id(id) == program_->InternTypeOf(cell),
           "moved a value to a cell that has one, or is of another type");
  RemoveResult(mutable_op(value(id).op()), value(id).result);
  RenameValue(id, program_->cell_name(cell));
  Value& moved = mutable_value(id);
  moved.definition = Definition::kCell;
  moved.index = cell.index();
  moved.result = 0;
  KeepCellValue(cell, id);
  for (const Use& use : moved.uses) TouchPlace(use.op);
}

}  // namespace halftone
