#include "graph/schema/type_rules.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/text.h"

namespace halftone {
namespace {

bool Binds(const Slot& slot) { return !slot.shape_only() && !slot.mixed(); }

std::string Words(const DTypeSet& dtypes) {
  return absl::StrJoin(
      dtypes, dtypes.size() == 2 ? " or " : ", ",
      [](std::string* out, DType d) { absl::StrAppend(out, Name(d)); });
}

std::vector<std::string> BindableNames(const OpSchema& schema) {
  std::vector<std::string> names;
  for (const TypeVar& var : schema.type_vars()) names.push_back(var.name);
  for (const Slot& slot : schema.outputs()) names.push_back(slot.name);
  return names;
}

}  // namespace

SlotTypes TypesOf(const Block& block, const SlotValues& values) {
  SlotTypes types(values.slots());
  for (int s = 0; s < values.slots(); ++s) {
    types[s].reserve(values.slot(s).size());
    for (ValueId value : values.slot(s)) types[s].push_back(&block.type(value));
  }
  return types;
}

absl::Status TypeBinder::BindInputs(const SlotTypes& inputs) {
  for (size_t s = 0; s < inputs.size(); ++s) {
    const Slot& slot = schema_.inputs()[s];
    if (!Binds(slot)) continue;
    const int var = slot.type_var;
    for (const TensorType& type : TypeList(inputs[s])) {
      // A list's members are alike.
      if (type.dtype == (var >= 0 ? bound_[var].dtype : slot.fixed)) continue;
      absl::Status status;
      if (var >= 0) {
        status = BindVar(var, type.dtype, absl::StrCat("slot ", slot.name));
      } else {
        status = ModelError("expected ", slot.type);
      }
      if (!status.ok()) {
        return ModelError("slot ", slot.name, ": ", status.message(),
                          ", found ", ToString(type, symbols_),
                          "; cast it first");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status TypeBinder::Bind(absl::string_view name, DType dtype) {
  int var = schema_.FindTypeVar(name);
  const int output = schema_.FindOutput(name);
  if (var < 0 && output < 0) {
    return ModelError("no type variable ", name,
                      NearestHint(name, BindableNames(schema_)));
  }
  if (var < 0) var = schema_.outputs()[output].type_var;
  const absl::Status status =
      var >= 0 ? BindVar(var, dtype, absl::StrCat("the dtype asked for ", name))
      : dtype == schema_.outputs()[output].fixed
          ? absl::OkStatus()
          : ModelError("expected ", schema_.outputs()[output].type);
  if (status.ok()) return status;
  return ModelError("dtype of ", name, ": ", status.message(), ", found ",
                    Name(dtype));
}

absl::Status TypeBinder::BindVar(int var, DType dtype, absl::string_view by) {
  const TypeVar& v = schema_.type_vars()[var];
  if (std::find(v.allowed.begin(), v.allowed.end(), dtype) == v.allowed.end()) {
    return ModelError("expected ", Words(v.allowed));
  }
  Bound& bound = bound_[var];
  if (bound.dtype == DType::kInvalid) {
    bound = {dtype, std::string(by)};
  } else if (bound.dtype != dtype) {
    return ModelError("expected ", Name(bound.dtype), " as ", bound.by);
  }
  return absl::OkStatus();
}

bool TypeBinder::AnInputHas(int var) const {
  for (const Slot& slot : schema_.inputs()) {
    if (Binds(slot) && slot.type_var == var) return true;
  }
  return false;
}

int DTypeAttrOf(const OpSchema& schema) {
  for (const char* name : {"to", "dtype"}) {
    const int index = schema.FindAttr(name);
    if (index >= 0 &&
        std::holds_alternative<DType>(schema.attrs()[index].default_value)) {
      return index;
    }
  }
  return -1;
}

absl::Status TypeBinder::BindFromAttr(AttrSpan attrs) {
  const int index = DTypeAttrOf(schema_);
  if (index < 0) return absl::OkStatus();
  const AttrValue* set = FindSetAttr(attrs, index);
  const DType dtype = std::get<DType>(
      set != nullptr ? *set : schema_.attrs()[index].default_value);
  if (dtype == DType::kInvalid) return absl::OkStatus();
  const std::string& name = schema_.attrs()[index].name;
  for (const Slot& slot : schema_.outputs()) {
    const int var = slot.type_var;
    if (var < 0 || slot.mixed() || AnInputHas(var)) continue;
    const absl::Status status =
        BindVar(var, dtype, absl::StrCat("attribute ", name));
    if (!status.ok()) {
      return ModelError("attribute ", name, ": ", status.message(), ", found ",
                        Name(dtype));
    }
  }
  return absl::OkStatus();
}

void TypeBinder::BindStoredOutputs(const SlotTypes& outputs) {
  for (size_t s = 0; s < outputs.size(); ++s) {
    const Slot& slot = schema_.outputs()[s];
    const int var = slot.type_var;
    if (var < 0 || slot.mixed() || outputs[s].empty()) continue;
    // A dtype that is not allowed stays unbound and shows as a difference.
    (void)BindVar(var, outputs[s][0]->dtype, "the outputs");
  }
}

void TypeBinder::BindDefaults() {
  // A default may name a variable that has a default itself.
  for (size_t round = 0; round < bound_.size(); ++round) {
    for (size_t i = 0; i < bound_.size(); ++i) {
      const std::string& source = schema_.type_vars()[i].default_to;
      if (bound_[i].dtype != DType::kInvalid || source.empty()) continue;
      const int var = schema_.FindTypeVar(source);
      bound_[i].dtype = var >= 0 ? bound_[var].dtype : *DTypeFromName(source);
      bound_[i].by = absl::StrCat("the default ", source);
    }
  }
}

absl::Status TypeBinder::SetOutputDTypes(InferContext& context) const {
  for (size_t s = 0; s < context.outputs().size(); ++s) {
    const Slot& slot = schema_.outputs()[s];
    if (slot.mixed()) continue;
    for (TensorType& type : context.outputs()[s]) {
      type.dtype = DTypeOf(slot);
      if (type.dtype == DType::kInvalid) {
        return ModelError("slot ", slot.name, ": expected a dtype for ",
                          slot.type, ", found none; bind ", slot.type);
      }
    }
  }
  return absl::OkStatus();
}

DType TypeBinder::DTypeOf(const Slot& slot) const {
  return slot.type_var >= 0 ? bound_[slot.type_var].dtype : slot.fixed;
}

absl::Status CheckArity(absl::Span<const Slot> slots,
                        absl::Span<const int> counts) {
  if (slots.size() != counts.size()) {
    return ModelError("expected ", slots.size(), " slots, found ",
                      counts.size());
  }
  for (size_t s = 0; s < slots.size(); ++s) {
    const int n = counts[s];
    if (TakesMembers(slots[s], n)) continue;
    if (n == 0) {
      return ModelError("slot ", slots[s].name,
                        ": expected one value, found nothing; give it (",
                        slots[s].doc, ")");
    }
    return ModelError("slot ", slots[s].name, ": expected one value, found ", n,
                      "; this slot is no list");
  }
  return absl::OkStatus();
}

absl::Status CheckAttrs(const OpSchema& schema, AttrSpan attrs) {
  for (const auto& [index, value] : attrs) {
    if (index < 0 || index >= static_cast<int>(schema.attrs().size())) {
      return ModelError("expected ", schema.attrs().size(),
                        " attributes, found one with index ", index);
    }
    const AttrSpec& spec = schema.attrs()[index];
    if (KindOf(value) != KindOf(spec.default_value)) {
      return ModelError("attribute ", spec.name, ": expected ",
                        Name(KindOf(spec.default_value)), ", found ",
                        Name(KindOf(value)));
    }
  }
  if (!schema.requires_attrs()) return absl::OkStatus();
  for (size_t i = 0; i < schema.attrs().size(); ++i) {
    const AttrSpec& spec = schema.attrs()[i];
    if (spec.required && FindSetAttr(attrs, static_cast<int>(i)) == nullptr) {
      return ModelError("attribute ", spec.name, ": expected ",
                        Name(KindOf(spec.default_value)),
                        ", found nothing; give it (", spec.doc, ")");
    }
  }
  return absl::OkStatus();
}

namespace {

bool IsImage(const TensorType& type) { return type.rank() == 4; }

// The first single 4-d input that holds elements, or null.
const TensorType* LeadImage(const OpSchema& schema, const SlotTypes& inputs) {
  for (size_t s = 0; s < inputs.size(); ++s) {
    const Slot& slot = schema.inputs()[s];
    if (slot.list() || slot.shape_only() || inputs[s].empty()) continue;
    if (IsImage(*inputs[s][0])) return inputs[s][0];
  }
  return nullptr;
}

absl::Status CheckRowMajor(absl::Span<const Slot> slots,
                           const InferContext& context,
                           const SlotTypes& types) {
  for (size_t s = 0; s < types.size(); ++s) {
    if (!Binds(slots[s])) continue;
    for (const TensorType& type : TypeList(types[s])) {
      if (type.layout == Layout::kRowMajor) continue;
      return context.Error("slot ", slots[s].name,
                           ": expected row_major, found ", context.Print(type));
    }
  }
  return absl::OkStatus();
}

// Single 4-d operands of an element-wise op share one layout.
absl::Status CheckOneLayout(absl::Span<const Slot> slots,
                            const InferContext& context, const SlotTypes& types,
                            const TensorType* lead) {
  for (size_t s = 0; s < types.size(); ++s) {
    if (lead == nullptr || slots[s].list() || !Binds(slots[s])) continue;
    for (const TensorType& type : TypeList(types[s])) {
      if (!IsImage(type) || type.layout == lead->layout) continue;
      return context.Error("slot ", slots[s].name, ": expected ",
                           Name(lead->layout), " as the other operands, found ",
                           context.Print(type));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void FollowLayouts(const SlotTypes& inputs, InferContext& context) {
  const OpSchema& schema = context.schema();
  if (schema.layout() == LayoutRule::kRowMajor) return;
  const TensorType* lead = LeadImage(schema, inputs);
  for (size_t s = 0; s < context.outputs().size(); ++s) {
    const Slot& slot = schema.outputs()[s];
    std::vector<TensorType>& types = context.outputs()[s];
    for (size_t i = 0; i < types.size(); ++i) {
      if (!IsImage(types[i]) || slot.mixed() || context.LayoutIsSet(s, i)) {
        continue;
      }
      if (!slot.list() && lead != nullptr) types[i].layout = lead->layout;
      // Lists go member by member, where storage may be shared.
      if (slot.list() && slot.may_alias > 0 &&
          i < inputs[slot.may_alias - 1].size()) {
        types[i].layout = inputs[slot.may_alias - 1][i]->layout;
      }
    }
  }
}

absl::Status CheckLayouts(const InferContext& context, const SlotTypes& inputs,
                          const SlotTypes& outputs) {
  const OpSchema& schema = context.schema();
  // An op whose Infer sets layouts is there to change them.
  if (context.SetsLayouts()) return absl::OkStatus();
  if (schema.layout() == LayoutRule::kRowMajor) {
    HT_RETURN_IF_ERROR(CheckRowMajor(schema.inputs(), context, inputs));
    return CheckRowMajor(schema.outputs(), context, outputs);
  }
  if (schema.layout() == LayoutRule::kAny) {
    const TensorType* lead = LeadImage(schema, inputs);
    HT_RETURN_IF_ERROR(CheckOneLayout(schema.inputs(), context, inputs, lead));
    return CheckOneLayout(schema.outputs(), context, outputs, lead);
  }
  return absl::OkStatus();
}

namespace {

bool AnySharded(const SlotTypes& inputs) {
  for (const auto& slot : inputs) {
    for (const TensorType& type : TypeList(slot)) {
      if (type.sharded) return true;
    }
  }
  return false;
}

// The input slot whose members outputs of the slot are made of; -1: none.
int SourceSlot(const OpSchema& schema, const Slot& output) {
  if (output.may_alias > 0) return output.may_alias - 1;
  if (output.list()) return schema.FindInput("Param");
  return !schema.inputs().empty() && !schema.inputs()[0].list() ? 0 : -1;
}

}  // namespace

void FollowShards(const SlotTypes& inputs, InferContext& context) {
  const OpSchema& schema = context.schema();
  if (!AnySharded(inputs)) return;
  for (size_t s = 0; s < context.outputs().size(); ++s) {
    const int source = SourceSlot(schema, schema.outputs()[s]);
    std::vector<TensorType>& types = context.outputs()[s];
    for (size_t i = 0; source >= 0 && i < types.size(); ++i) {
      if (i >= inputs[source].size()) break;
      const TensorType& from = *inputs[source][i];
      types[i].sharded = from.sharded && from.dims == types[i].dims;
    }
  }
}

absl::Status CheckShards(const InferContext& context, const SlotTypes& inputs) {
  if (!AnySharded(inputs)) return absl::OkStatus();
  const OpSchema& schema = context.schema();
  if (schema.name() == "check_finite" || schema.name() == "all_gather") {
    return absl::OkStatus();
  }
  const bool by_element = schema.guarded() || schema.element_wise();
  const TypeList lead(inputs[0]);
  for (size_t s = 0; s < inputs.size(); ++s) {
    for (size_t i = 0; i < inputs[s].size(); ++i) {
      const TensorType& type = *inputs[s][i];
      // What all elements share, a rate or a scale.
      if (!schema.inputs()[s].list() && !type.sharded && type.rank() == 0) {
        continue;
      }
      if (schema.inputs()[s].name == "SquaredNorm") continue;
      const bool alike = i < lead.size() && lead[i].sharded == type.sharded;
      if (by_element && alike) continue;
      return context.Error("slot ", schema.inputs()[s].name, ": expected ",
                           type.sharded ? "a whole tensor" : "a shard",
                           ", found ", context.Print(type));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSizes(const InferContext& context) {
  for (size_t s = 0; s < context.outputs().size(); ++s) {
    for (const TensorType& type : context.outputs()[s]) {
      bool negative = false;
      for (const Dim& dim : type.dims) negative |= dim.coefficient() < 0;
      if (negative || type.Elements().coefficient() ==
                          std::numeric_limits<int64_t>::max()) {
        return context.Error("slot ", context.schema().outputs()[s].name,
                             ": expected dims of 0 and more and fewer than "
                             "2^63 elements, found ",
                             context.Print(type));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace halftone
