#include "graph/ir/block.h"

#include <utility>

#include "graph/base/check.h"
#include "graph/ir/program.h"

namespace halftone {

// ---- Values.

ValueId Block::NewValue(absl::string_view name, TypeId type,
                        Definition definition, int32_t index) {
  Value& value = values_.Add();
  value.id = ValueId(values_.size() - 1);
  value.name = program_->InternName(name);
  value.type = type;
  value.definition = definition;
  value.index = index;
  const bool fresh = value_by_name_.try_emplace(value.name, value.id).second;
  HT_CHECK(fresh, std::string(name).c_str());
  return value.id;
}

ValueId Block::AddFeed(absl::string_view name, const TensorType& type) {
  feeds_.push_back(
      NewValue(name, program_->Intern(type), Definition::kFeed, -1));
  return feeds_.back();
}

ValueId Block::CellValue(CellId cell) {
  const auto it = value_of_cell_.find(cell.index());
  if (it != value_of_cell_.end()) return it->second;
  const Cell& c = program_->cell(cell);
  const ValueId id = NewValue(c.name, program_->Intern(c.type),
                              Definition::kCell, cell.index());
  value_of_cell_[cell.index()] = id;
  return id;
}

ValueId Block::ConstantValue(ConstantId constant) {
  const auto it = value_of_constant_.find(constant.index());
  if (it != value_of_constant_.end()) return it->second;
  const Constant& c = program_->constant(constant);
  const ValueId id = NewValue(c.name, program_->Intern(c.type),
                              Definition::kConstant, constant.index());
  value_of_constant_[constant.index()] = id;
  return id;
}

std::vector<ValueId> Block::Feeds() const {
  std::vector<ValueId> live;
  for (ValueId id : feeds_) {
    if (!value(id).erased) live.push_back(id);
  }
  return live;
}

const TensorType& Block::type(ValueId id) const {
  return program_->type(value(id).type);
}

absl::string_view Block::name(ValueId id) const {
  return program_->name_of(value(id).name);
}

ValueId Block::FindValue(absl::string_view name) const {
  const auto it = value_by_name_.find(program_->FindName(name));
  return it == value_by_name_.end() ? ValueId() : it->second;
}

void Block::SetType(ValueId id, const TensorType& type) {
  value(id).type = program_->Intern(type);
}

void Block::ForgetName(Value& value) {
  value_by_name_.erase(value.name);
  unique_values_.Release(program_->name_of(value.name));
}

void Block::RenameValue(ValueId id, absl::string_view name) {
  Value& renamed = value(id);
  const NameId interned = program_->InternName(name);
  if (interned == renamed.name) return;
  ForgetName(renamed);
  renamed.name = interned;
  const bool fresh = value_by_name_.try_emplace(interned, id).second;
  HT_CHECK(fresh, std::string(name).c_str());
}

void Block::EraseValue(ValueId id) {
  Value& gone = value(id);
  HT_CHECK(!gone.erased && gone.uses.empty(), "erased a value that is read");
  HT_CHECK(gone.definition != Definition::kOp, "erased an op's output");
  ForgetName(gone);
  gone.erased = true;
  if (gone.definition == Definition::kCell) value_of_cell_.erase(gone.index);
  if (gone.definition == Definition::kConstant) {
    value_of_constant_.erase(gone.index);
  }
}

// ---- Ops.

OpId Block::AddOp(const OpSchema* schema, absl::string_view name,
                  absl::Span<const std::vector<ValueId>> input_slots,
                  absl::Span<const std::vector<OutputSpec>> output_slots,
                  AttrList attrs, Position position) {
  Op& op = ops_.Add();
  op.id = OpId(ops_.size() - 1);
  op.schema = schema;
  op.attrs = std::move(attrs);
  for (const std::vector<ValueId>& slot : input_slots) {
    op.inputs.AppendSlot(slot);
  }
  op.use_indices.resize(op.inputs.all().size());
  for (int i = 0; i < static_cast<int>(op.inputs.all().size()); ++i) {
    AddUse(op.inputs.all()[i], op.id, i);
  }
  int result = 0;
  for (const std::vector<OutputSpec>& slot : output_slots) {
    absl::InlinedVector<ValueId, 4> values;
    for (const OutputSpec& output : slot) {
      if (name.empty()) name = output.name;
      values.push_back(NewValue(output.name, program_->Intern(output.type),
                                Definition::kOp, op.id.index()));
      value(values.back()).result = result++;
    }
    op.outputs.AppendSlot(values);
  }
  op.name = program_->InternName(UniqueOpName(name.empty() ? "op" : name));
  op_by_name_[op.name] = op.id;
  Link(op, position);
  return op.id;
}

void Block::EraseOp(OpId id) {
  Op& gone = op(id);
  HT_CHECK(!gone.erased, "erased an op twice");
  for (ValueId output : gone.outputs.all()) {
    HT_CHECK(value(output).uses.empty(), "erased an op whose output is read");
  }
  for (int i = 0; i < static_cast<int>(gone.inputs.all().size()); ++i) {
    DropUse(id, i);
  }
  for (ValueId output : gone.outputs.all()) {
    ForgetName(value(output));
    value(output).erased = true;
  }
  op_by_name_.erase(gone.name);
  unique_ops_.Release(program_->name_of(gone.name));
  Unlink(gone);
  gone.erased = true;
  gone.inputs.Clear();
  gone.outputs.Clear();
  gone.use_indices.clear();
  gone.attrs = AttrList();
  gone.body.reset();
}

void Block::MoveOp(OpId id, Position position) {
  if (position.before == id) return;
  Unlink(op(id));
  Link(op(id), position);
}

absl::string_view Block::name(const Op& op) const {
  return program_->name_of(op.name);
}

OpId Block::FindOp(absl::string_view name) const {
  const auto it = op_by_name_.find(program_->FindName(name));
  return it == op_by_name_.end() ? OpId() : it->second;
}

std::vector<OpId> Block::ops() const {
  std::vector<OpId> order;
  order.reserve(live_ops_);
  for (OpId id = first_; id.valid(); id = op(id).next) order.push_back(id);
  return order;
}

std::vector<int32_t> Block::Numbering() const {
  std::vector<int32_t> numbers(op_limit(), -1);
  int32_t number = 0;
  for (OpId id = first_; id.valid(); id = op(id).next) {
    numbers[id.index()] = number++;
  }
  return numbers;
}

std::string Block::UniqueValueName(absl::string_view base) const {
  return unique_values_.Find(
      base, [this](absl::string_view name) { return FindValue(name).valid(); });
}

std::string Block::UniqueOpName(absl::string_view base) const {
  return unique_ops_.Find(
      base, [this](absl::string_view name) { return FindOp(name).valid(); });
}

void Block::Link(Op& op, Position position) {
  op.next = position.before;
  op.previous = op.next.valid() ? ops_[op.next.index()].previous : last_;
  (op.previous.valid() ? ops_[op.previous.index()].next : first_) = op.id;
  (op.next.valid() ? ops_[op.next.index()].previous : last_) = op.id;
  ++live_ops_;
}

void Block::Unlink(Op& op) {
  (op.previous.valid() ? ops_[op.previous.index()].next : first_) = op.next;
  (op.next.valid() ? ops_[op.next.index()].previous : last_) = op.previous;
  --live_ops_;
}

}  // namespace halftone
