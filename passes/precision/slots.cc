#include "passes/precision/slots.h"

#include <algorithm>

#include "graph/schema/op_registry.h"

namespace halftone {
namespace passes {
namespace {

bool Allows(const TypeVar& var, DType dtype) {
  return std::find(var.allowed.begin(), var.allowed.end(), dtype) !=
         var.allowed.end();
}

SlotKind KindOf(const OpSchema& schema, const Slot& slot) {
  if (slot.shape_only()) return SlotKind::kFixed;
  if (slot.keep_f32()) return SlotKind::kKeepF32;
  if (slot.type_var < 0) {
    return slot.fixed == DType::kF32 ? SlotKind::kKeepF32 : SlotKind::kFixed;
  }
  const TypeVar& var = schema.type_vars()[slot.type_var];
  if (!Allows(var, DType::kF32)) return SlotKind::kFixed;
  return Allows(var, DType::kF16) && Allows(var, DType::kBF16)
             ? SlotKind::kEither
             : SlotKind::kKeepF32;
}

}  // namespace

SlotTable::SlotTable() : cast_(Ops().Find("cast")) {}

const SchemaSlots& SlotTable::Of(const OpSchema& schema) {
  std::unique_ptr<SchemaSlots>& slots = known_[&schema];
  if (slots == nullptr) {
    slots = std::make_unique<SchemaSlots>();
    for (const Slot& slot : schema.inputs()) {
      slots->inputs.push_back(KindOf(schema, slot));
    }
    for (const Slot& slot : schema.outputs()) {
      slots->outputs.push_back(KindOf(schema, slot));
    }
  }
  return *slots;
}

}  // namespace passes
}  // namespace halftone
