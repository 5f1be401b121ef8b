#include "graph/ir/block.h"

#include <utility>

#include "graph/base/check.h"
#include "graph/ir/program.h"

namespace halftone {

Block::Block(Program* program, int32_t ops, int32_t values)
    : program_(program), types_(program->types()) {
  ops_.Reserve(ops);
  links_.Reserve(ops);
  use_indices_.Reserve(ops);
  values_.Reserve(values);
}

// ---- Values.

ValueId Block::NewValue(NameId name, TypeId type, Definition definition,
                        int32_t index, int32_t result) {
  Value& value = values_.Add();
  value.id = ValueId(values_.size() - 1);
  HT_CHECK(value_by_name_.Insert(name, value.id),
           std::string(program_->name_of(name)).c_str());
  value.name = name;
  value.type = type;
  value.definition = definition;
  value.index = index;
  value.result = result;
  ++live_values_;
  return value.id;
}

ValueId Block::AddFeed(absl::string_view name, const TensorType& type) {
  return AddFeed(program_->InternName(name), program_->Intern(type));
}

ValueId Block::AddFeed(NameId name, TypeId type) {
  feeds_.push_back(NewValue(name, type, Definition::kFeed, -1));
  return feeds_.back();
}

ValueId Block::CellValue(CellId cell) {
  const ValueId known = FindCellValue(cell);
  if (known.valid()) return known;
  const ValueId id =
      NewValue(program_->cell_name(cell), program_->InternTypeOf(cell),
               Definition::kCell, cell.index());
  KeepCellValue(cell, id);
  return id;
}

void Block::KeepCellValue(CellId cell, ValueId value) {
  const size_t index = cell.index();
  if (index >= value_of_cell_.size()) value_of_cell_.resize(index + 1);
  value_of_cell_[index] = value;
}

ValueId Block::FindCellValue(CellId cell) const {
  const size_t index = cell.index();
  return index < value_of_cell_.size() ? value_of_cell_[index] : ValueId();
}

ValueId Block::ConstantValue(ConstantId constant) {
  const auto it = value_of_constant_.find(constant.index());
  if (it != value_of_constant_.end()) return it->second;
  const Constant& c = program_->constant(constant);
  const ValueId id =
      NewValue(program_->constant_name(constant), program_->Intern(c.type),
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

absl::string_view Block::name(ValueId id) const {
  return program_->name_of(value(id).name);
}

ValueId Block::FindValue(absl::string_view name) const {
  return FindValue(program_->FindName(name));
}

void Block::Touch(OpId id) {
  TouchPlace(id);
  links_[id.index()].kind = 0;
}

void Block::TouchPlace(OpId id) {
  links_[id.index()].edit = program_->CountEdit();
}

void Block::TouchInput(OpId id, TypeId before, TypeId after) {
  if (before == after) {
    TouchPlace(id);
  } else {
    Touch(id);
  }
}

void Block::SetType(ValueId id, const TensorType& type) {
  SetType(id, program_->Intern(type));
}

void Block::SetType(ValueId id, TypeId type) {
  Value& changed = mutable_value(id);
  changed.type = type;
  if (changed.op().valid()) Touch(changed.op());
  for (const Use& use : changed.uses) Touch(use.op);
}

void Block::ForgetName(Value& value) {
  value_by_name_.Erase(value.name);
  unique_values_.Release(value.name, program_->names());
}

void Block::RenameValue(ValueId id, absl::string_view name) {
  RenameValue(id, program_->InternName(name));
}

void Block::RenameValue(ValueId id, NameId name) {
  Value& renamed = mutable_value(id);
  if (name == renamed.name) return;
  if (renamed.op().valid()) Touch(renamed.op());
  ForgetName(renamed);
  renamed.name = name;
  HT_CHECK(value_by_name_.Insert(name, id),
           std::string(program_->name_of(name)).c_str());
}

void Block::EraseValue(ValueId id) {
  Value& gone = mutable_value(id);
  HT_CHECK(!gone.erased && gone.uses.empty(), "erased a value that is read");
  if (gone.definition == Definition::kOp) {
    RemoveResult(mutable_op(gone.op()), gone.result);
  }
  ForgetName(gone);
  gone.erased = true;
  --live_values_;
  if (gone.definition == Definition::kCell) {
    value_of_cell_[gone.index] = ValueId();
  }
  if (gone.definition == Definition::kConstant) {
    value_of_constant_.erase(gone.index);
  }
}

// ---- Ops.

OpId Block::AddOp(const OpSchema* schema, NameId name, SlotValues inputs,
                  const Outputs& outputs, Attrs attrs, Position position) {
  Op& op = ops_.Add();
  op.id = OpId(ops_.size() - 1);
  op.schema = schema;
  op.attrs = attrs;
  op.inputs = std::move(inputs);
  const absl::Span<const ValueId> reads = op.inputs.all();
  UseIndices& use_indices = use_indices_.Add();
  for (size_t i = 0; i < reads.size(); ++i) {
    use_indices.push_back(Enlist(reads[i], {op.id, static_cast<int32_t>(i)}));
  }
  const absl::Span<const OutputSpec> results = outputs.all();
  for (size_t i = 0; i < results.size(); ++i) {
    op.outputs.Add(NewValue(results[i].name, results[i].type, Definition::kOp,
                            op.id.index(), static_cast<int32_t>(i)));
  }
  op.outputs.ends_ = outputs.ends();
  if (!name.valid()) {
    name = results.empty() ? program_->InternName("op") : results[0].name;
  }
  op.name = name;
  if (!op_by_name_.Insert(name, op.id)) {
    op.name = NumberedOpName(name);
    op_by_name_.Insert(op.name, op.id);
  }
  ++CountOfSchema(schema);
  Link& link = links_.Add();
  link.schema = schema;
  link.edit = program_->CountEdit();
  LinkIn(op.id, position);
  return op.id;
}

OpId Block::AddCopy(const Op& op, const Block& from,
                    absl::FunctionRef<ValueId(ValueId)> input) {
  SlotValues inputs = op.inputs;
  for (ValueId& value : inputs.values_) value = input(value);
  Outputs outputs;
  for (int s = 0; s < op.outputs.slots(); ++s) {
    for (ValueId value : op.outputs.slot(s)) {
      outputs.Add({from.value(value).name, from.value(value).type});
    }
    outputs.EndSlot();
  }
  const OpId id =
      AddOp(op.schema, op.name, std::move(inputs), outputs, op.attrs, End());
  Op& copy = ops_[id.index()];
  copy.role = op.role;
  copy.line = op.line;
  return id;
}

OpId Block::CopyOp(const Op& op, const Block& from,
                   absl::FunctionRef<ValueId(ValueId)> input) {
  const OpId id = AddCopy(op, from, input);
  Op& copy = ops_[id.index()];
  copy.decision = op.decision;
  copy.origins = op.origins;
  return id;
}

OpId Block::TakeOp(Op& op, const Block& from,
                   absl::FunctionRef<ValueId(ValueId)> input) {
  const OpId id = AddCopy(op, from, input);
  Op& copy = ops_[id.index()];
  copy.decision = std::move(op.decision);
  copy.origins = std::move(op.origins);
  return id;
}

void Block::EraseOp(OpId id) {
  Op& gone = ops_[id.index()];
  HT_CHECK(!gone.erased, "erased an op twice");
  for (ValueId output : gone.outputs.all()) {
    HT_CHECK(value(output).uses.empty(), "erased an op whose output is read");
  }
  for (int i = 0; i < static_cast<int>(gone.inputs.all().size()); ++i) {
    DropUse(id, i);
  }
  for (ValueId output : gone.outputs.all()) {
    ForgetName(mutable_value(output));
    mutable_value(output).erased = true;
  }
  live_values_ -= static_cast<int>(gone.outputs.all().size());
  --CountOfSchema(gone.schema);
  op_by_name_.Erase(gone.name);
  unique_ops_.Release(gone.name, program_->names());
  Unlink(id);
  gone.erased = true;
  gone.inputs.Clear();
  gone.outputs.Clear();
  use_indices_[id.index()].clear();
  gone.attrs = Attrs();
  gone.body = nullptr;
}

void Block::MoveOp(OpId id, Position position) {
  if (position.before == id) return;
  Unlink(id);
  LinkIn(id, position);
  TouchPlace(id);
  for (ValueId output : op(id).outputs.all()) {
    for (const Use& use : value(output).uses) TouchPlace(use.op);
  }
}

absl::string_view Block::name(const Op& op) const {
  return program_->name_of(op.name);
}

OpId Block::FindOp(absl::string_view name) const {
  return FindOp(program_->FindName(name));
}

// `visit` says whether to go on.
template <typename Visit>
void Block::VisitFromBothEnds(Visit visit) const {
  OpId front = first_, back = last_;
  for (int32_t i = 0, j = live_ops_ - 1; i <= j; ++i, --j) {
    if (!visit(front, i) || (i < j && !visit(back, j))) return;
    front = next(front);
    back = previous(back);
  }
}

std::vector<OpId> Block::ops() const {
  std::vector<OpId> order(live_ops_);
  VisitFromBothEnds([&order](OpId id, int32_t place) {
    order[place] = id;
    return true;
  });
  return order;
}

int Block::CountOf(const OpSchema* schema) const {
  for (const SchemaCount& entry : counts_) {
    if (entry.schema == schema) return entry.count;
  }
  return 0;
}

// A program has a few dozen schemas: a walk over their counts is as fast as a
// look-up, and there is nothing to allocate in a body. Those that are asked for
// often come to lie first.
int32_t& Block::CountOfSchema(const OpSchema* schema) {
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i].schema != schema) continue;
    if (i == 0) return counts_[0].count;
    std::swap(counts_[i], counts_[i - 1]);
    return counts_[i - 1].count;
  }
  counts_.push_back({schema, 0});
  return counts_.back().count;
}

std::vector<OpId> Block::OpsOf(const OpSchema* schema) const {
  std::vector<OpId> found, behind;
  int left = CountOf(schema);
  if (left == 0) return found;
  found.reserve(left);
  const int32_t half = (live_ops_ + 1) / 2;
  VisitFromBothEnds([&](OpId id, int32_t place) {
    if (this->schema(id) == schema) {
      (place < half ? found : behind).push_back(id);
      --left;
    }
    return left > 0;
  });
  found.insert(found.end(), behind.rbegin(), behind.rend());
  return found;
}

bool Block::HasOpOf(absl::FunctionRef<bool(const OpSchema*)> is_one) const {
  for (const SchemaCount& entry : counts_) {
    if (entry.count > 0 && is_one(entry.schema)) return true;
  }
  return false;
}

std::vector<int32_t> Block::Numbering() const {
  std::vector<int32_t> numbers(op_limit(), -1);
  VisitFromBothEnds([&numbers](OpId id, int32_t place) {
    numbers[id.index()] = place;
    return true;
  });
  return numbers;
}

std::string Block::UniqueValueName(absl::string_view base) const {
  return std::string(
      program_->name_of(UniqueValueName(program_->InternName(base))));
}

NameId Block::UniqueValueName(NameId base) const {
  return unique_values_.Find(base, program_->names(), [this](NameId name) {
    return FindValue(name).valid();
  });
}

NameId Block::NumberedOpName(NameId base) const {
  return unique_ops_.Find(base, program_->names(),
                          [this](NameId name) { return FindOp(name).valid(); });
}

void Block::LinkIn(OpId id, Position position) {
  Link& link = links_[id.index()];
  link.next = position.before;
  link.previous = link.next.valid() ? previous(link.next) : last_;
  NextOf(link.previous) = id;
  PreviousOf(link.next) = id;
  ++live_ops_;
}

void Block::Unlink(OpId id) {
  const Link link = links_[id.index()];
  NextOf(link.previous) = link.next;
  PreviousOf(link.next) = link.previous;
  --live_ops_;
}

}  // namespace halftone
