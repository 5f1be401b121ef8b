#include "passes/precision/insert_casts.h"

#include <array>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "graph/base/error.h"
#include "graph/ir/well_known.h"
#include "passes/precision/cast.h"
#include "passes/precision/slots.h"

namespace halftone {
namespace passes {
namespace {

// The dtype that an op of that precision reads in a slot of that kind.
DType Wanted(SlotKind kind, DType precision) {
  return kind == SlotKind::kKeepF32 ? DType::kF32 : precision;
}

// What is not forward keeps its dtypes, too.
bool KeepsDTypes(const Block& block, const Op& op, const SlotTable& slots) {
  return op.role != Role::kForward || slots.HasOwnDTypes(block, op);
}

// One run over one block.
class Inserter {
 public:
  // `rounded`: the dtype through which KeepF32 slots of low ops read
  // parameters; kF32: as they are.
  Inserter(Block& block, DType rounded) : block_(block), rounded_(rounded) {}

  // The parameters' cells in `dtype`. Not those that FP32 scopes alone read;
  // with `keep`, not those that a KeepF32 slot reads.
  void LowerCells(DType dtype, bool keep);
  absl::Status Apply(OpId id);
  bool changed() const { return changed_; }

 private:
  bool ReadByKeepF32Slot(const Value& value);
  bool OnlyReadInScopes(const Value& value) const;
  bool ReadsRounded(const Op& op, SlotKind kind, ValueId input) const;
  absl::Status SetInputs(OpId id, const SchemaSlots& slots);
  void SetOutputs(OpId id, const SchemaSlots& slots);
  absl::StatusOr<ValueId> CastOf(ValueId value, DType to, Reason reason,
                                 const Op& reader);
  void SetDType(ValueId value, DType dtype);

  Block& block_;
  const DType rounded_;
  SlotTable slots_;
  // By value and dtype; casts are few next to values.
  absl::flat_hash_map<std::pair<ValueId, DType>, ValueId> casts_;
  absl::flat_hash_map<std::pair<TypeId, DType>, TypeId> types_;
  bool changed_ = false;
};

void Inserter::SetDType(ValueId value, DType dtype) {
  const TypeId old = block_.type_id(value);
  const auto [it, fresh] = types_.try_emplace({old, dtype});
  if (fresh) {
    TensorType type = block_.type(value);
    type.dtype = dtype;
    it->second = block_.program().Intern(type);
  }
  if (old == it->second) return;
  block_.SetType(value, it->second);
  changed_ = true;
}

bool Inserter::ReadByKeepF32Slot(const Value& value) {
  for (const Use& use : value.uses) {
    const Op& reader = block_.op(use.op);
    if (slots_.Of(*reader.schema).inputs[reader.inputs.SlotOf(use.position)] ==
        SlotKind::kKeepF32) {
      return true;
    }
  }
  return false;
}

bool Inserter::OnlyReadInScopes(const Value& value) const {
  for (const Use& use : value.uses) {
    const Decision& decision = block_.op(use.op).decision;
    if (decision.reason != Reason::kFp32Scope) return false;
  }
  return !value.uses.empty();
}

void Inserter::LowerCells(DType dtype, bool keep) {
  Program& program = block_.program();
  for (int i = 0; i < block_.value_limit(); ++i) {
    const Value& value = block_.value(ValueId(i));
    if (value.erased || value.definition != Definition::kCell) continue;
    Cell& cell = program.cell(value.cell());
    if (cell.kind != CellKind::kParameter || cell.type.dtype != DType::kF32 ||
        (keep && ReadByKeepF32Slot(value)) || OnlyReadInScopes(value)) {
      continue;
    }
    cell.type.dtype = dtype;
    SetDType(value.id, dtype);
  }
}

absl::StatusOr<ValueId> Inserter::CastOf(ValueId value, DType to, Reason reason,
                                         const Op& reader) {
  const auto it = casts_.find({value, to});
  if (it != casts_.end()) return it->second;
  HT_ASSIGN_OR_RETURN(const ValueId cast,
                      AddCast(block_, value, to, reason, reader.name,
                              Block::Before(reader.id)));
  casts_[{value, to}] = cast;
  return cast;
}

bool Inserter::ReadsRounded(const Op& op, SlotKind kind, ValueId input) const {
  if (rounded_ == DType::kF32 || kind != SlotKind::kKeepF32 ||
      !IsLow(op.decision.precision) || block_.dtype(input) != DType::kF32) {
    return false;
  }
  const CellId cell = block_.value(input).cell();
  return cell.valid() &&
         block_.program().cell(cell).kind == CellKind::kParameter;
}

absl::Status Inserter::SetInputs(OpId id, const SchemaSlots& slots) {
  const Op& op = block_.op(id);
  const DType precision = op.decision.precision;
  int slot = 0;
  for (int i = 0; i < static_cast<int>(op.inputs.all().size()); ++i) {
    const SlotKind kind = KindAt(slots, op, i, &slot);
    if (kind == SlotKind::kFixed) continue;
    ValueId input = op.inputs.all()[i];
    if (!IsAmpFloat(block_.dtype(input))) continue;
    if (ReadsRounded(op, kind, input)) {
      HT_ASSIGN_OR_RETURN(input, CastOf(input, rounded_, Reason::kLevel, op));
    }
    const DType wanted = Wanted(kind, precision);
    if (block_.dtype(input) == wanted) continue;
    HT_ASSIGN_OR_RETURN(const ValueId cast,
                        CastOf(input, wanted,
                               kind == SlotKind::kKeepF32 ? Reason::kKeepF32Slot
                                                          : op.decision.reason,
                               op));
    block_.SetInput(id, i, cast);
    changed_ = true;
  }
  return absl::OkStatus();
}

void Inserter::SetOutputs(OpId id, const SchemaSlots& slots) {
  const Op& op = block_.op(id);
  for (int s = 0; s < op.outputs.slots(); ++s) {
    if (slots.outputs[s] != SlotKind::kEither) continue;
    for (ValueId output : op.outputs.slot(s)) {
      if (IsAmpFloat(block_.dtype(output))) {
        SetDType(output, op.decision.precision);
      }
    }
  }
}

absl::Status Inserter::Apply(OpId id) {
  const Op& op = block_.op(id);
  if (KeepsDTypes(block_, op, slots_)) return absl::OkStatus();
  if (!IsAmpFloat(op.decision.precision)) {
    // Passes run by name alone: a compile has them in order.
    return UsageError(block_.name(op), " (", op.schema->name(),
                      ") has no precision: assign-precision comes first");
  }
  const SchemaSlots& slots = slots_.Of(*op.schema);
  HT_RETURN_IF_ERROR(SetInputs(id, slots));
  SetOutputs(id, slots);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> InsertCasts::Run(Program& program) {
  Entry* train = program.FindEntry(kTrainEntry);
  if (train == nullptr) return false;
  Block& block = train->block();
  Inserter inserter(block, round_f32_slots_ ? low_ : DType::kF32);
  if (low_cells_) inserter.LowerCells(low_, keep_f32_slot_cells_);
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    HT_RETURN_IF_ERROR(inserter.Apply(id));
  }
  return inserter.changed();
}

int CountCasts(const Program& program, absl::Span<const Decision> decisions) {
  const Entry* train = program.FindEntry(kTrainEntry);
  if (train == nullptr) return 0;
  const Block& block = train->block();
  SlotTable slots;
  std::vector<DType> dtypes(block.value_limit());  // once casts are there
  for (int i = 0; i < block.value_limit(); ++i) {
    if (!block.value(ValueId(i)).erased) dtypes[i] = block.dtype(ValueId(i));
  }
  absl::flat_hash_set<std::pair<ValueId, DType>> casts;
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (KeepsDTypes(block, op, slots)) continue;
    const SchemaSlots& kinds = slots.Of(*op.schema);
    const DType precision = decisions[id.index()].precision;
    int slot = 0;
    for (int i = 0; i < static_cast<int>(op.inputs.all().size()); ++i) {
      const SlotKind kind = KindAt(kinds, op, i, &slot);
      const ValueId input = op.inputs.all()[i];
      const DType dtype = dtypes[input.index()];
      if (kind == SlotKind::kFixed || !IsAmpFloat(dtype) ||
          dtype == Wanted(kind, precision) ||
          block.value(input).cell().valid()) {
        continue;
      }
      casts.insert({input, Wanted(kind, precision)});
    }
    for (int s = 0; s < op.outputs.slots(); ++s) {
      if (kinds.outputs[s] != SlotKind::kEither) continue;
      for (ValueId output : op.outputs.slot(s)) {
        DType& dtype = dtypes[output.index()];
        if (IsAmpFloat(dtype)) dtype = precision;
      }
    }
  }
  return static_cast<int>(casts.size());
}

}  // namespace passes
}  // namespace halftone
