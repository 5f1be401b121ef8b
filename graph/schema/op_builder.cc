#include "graph/schema/op_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/schema/attr_coercion.h"
#include "graph/schema/op_draft.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/place.h"
#include "graph/schema/type_rules.h"

namespace halftone {
namespace {

// The attribute of an op whose aliases op lists tell apart: the one that the
// model has.
constexpr absl::string_view kWrittenAs = "written_as";

template <typename Items>
std::vector<std::string> NamesOf(const Items& items) {
  std::vector<std::string> names;
  for (const auto& item : items) names.push_back(item.name);
  return names;
}

absl::Status UnknownOp(absl::string_view type) {
  std::vector<std::string> names = Ops().Names();
  for (const auto& alias : Ops().Aliases()) names.push_back(alias.first);
  return ModelError("unknown op ", type, NearestHint(type, names));
}

absl::Status UnknownSlot(absl::string_view kind, absl::string_view name,
                         absl::Span<const Slot> slots) {
  return ModelError("no ", kind, " slot ", name,
                    NearestHint(name, NamesOf(slots)));
}

// What was given slot by slot, in any order, into the schema's order.
template <typename Items>
void SortBySlot(Items& items) {
  const auto by_slot = [](const auto& a, const auto& b) {
    return a.slot < b.slot;
  };
  if (std::is_sorted(items.begin(), items.end(), by_slot)) return;
  constexpr size_t kFew = 8;  // as most ops have: stable_sort allocates
  if (items.size() > kFew) {
    std::stable_sort(items.begin(), items.end(), by_slot);
    return;
  }
  for (auto item = items.begin() + 1; item != items.end(); ++item) {
    std::rotate(std::upper_bound(items.begin(), item, *item, by_slot), item,
                item + 1);
  }
}

}  // namespace

OpBuilder::OpBuilder(Block* block, absl::string_view op_type)
    : block_(block), schema_(Ops().Find(op_type)) {
  if (schema_ == nullptr) {
    unknown_ = std::string(op_type);
  } else if (op_type != schema_->name() && schema_->FindAttr(kWrittenAs) >= 0) {
    Attr(kWrittenAs, std::string(op_type));
  }
}

void OpBuilder::Refuse(absl::Status status) {
  if (wrong_.ok()) wrong_ = std::move(status);
}

OpBuilder& OpBuilder::Name(absl::string_view name) {
  return Name(name.empty() ? NameId() : block_->program().InternName(name));
}

OpBuilder& OpBuilder::Name(NameId name) {
  name_ = name;
  return *this;
}

OpBuilder& OpBuilder::In(absl::string_view slot, ValueId value) {
  return value.valid() ? In(slot, absl::Span<const ValueId>(&value, 1)) : *this;
}

OpBuilder& OpBuilder::In(absl::string_view slot,
                         absl::Span<const ValueId> values) {
  if (schema_ == nullptr) return *this;
  const int index = schema_->FindInput(slot);
  if (index < 0) Refuse(UnknownSlot("input", slot, schema_->inputs()));
  for (ValueId value : values) inputs_.push_back({index, value});
  return *this;
}

OpBuilder& OpBuilder::In(absl::string_view slot,
                         std::initializer_list<ValueId> values) {
  return In(slot, absl::Span<const ValueId>(values.begin(), values.size()));
}

OpBuilder& OpBuilder::Attr(absl::string_view name, AttrValue value) {
  if (schema_ == nullptr) return *this;
  const int index = schema_->FindAttr(name);
  if (index < 0) {
    const std::vector<std::string> names = NamesOf(schema_->attrs());
    Refuse(ModelError("no attribute ", name, NearestHint(name, names),
                      names.empty() ? "; the op has none"
                                    : absl::StrCat("; expected one of ",
                                                   absl::StrJoin(names, " "))));
    return *this;
  }
  const AttrKind found = KindOf(value);
  const AttrKind kind = KindOf(schema_->attrs()[index].default_value);
  if (found != kind) {
    std::optional<AttrValue> coerced = CoerceAttr(std::move(value), kind);
    if (!coerced.has_value()) {
      Refuse(ModelError("attribute ", name, ": expected ", halftone::Name(kind),
                        ", found ", halftone::Name(found), "; write it as ",
                        halftone::Name(kind)));
      return *this;
    }
    value = *std::move(coerced);
  }
  SetAttrAt(index, std::move(value), &attrs_);
  return *this;
}

OpBuilder& OpBuilder::AttrsOf(const Op& from) {
  if (schema_ == nullptr) return *this;
  for (const auto& [index, value] : from.attrs) {
    const std::string& name = from.schema->attrs()[index].name;
    if (schema_->FindAttr(name) >= 0) Attr(name, value);
  }
  return *this;
}

OpBuilder& OpBuilder::Out(absl::string_view slot, absl::string_view name) {
  return Out(slot, block_->program().InternName(name));
}

OpBuilder& OpBuilder::Out(absl::string_view slot, NameId name) {
  const int index = schema_ == nullptr ? -1 : schema_->FindOutput(slot);
  if (schema_ != nullptr && index < 0) {
    Refuse(UnknownSlot("output", slot, schema_->outputs()));
  }
  outputs_.push_back({index, name});
  return *this;
}

OpBuilder& OpBuilder::Out(absl::string_view slot, NameId name, TypeId type) {
  Out(slot, name);
  mixed_types_.push_back({outputs_.back().slot, type});
  return *this;
}

OpBuilder& OpBuilder::FirstOut(absl::string_view name) {
  return FirstOut(block_->program().InternName(name));
}

OpBuilder& OpBuilder::FirstOut(NameId name) {
  if (schema_ == nullptr) return *this;
  for (const Given<NameId>& output : outputs_) {
    if (output.slot == 0) return *this;
  }
  outputs_.push_back({0, name});
  return *this;
}

OpBuilder& OpBuilder::Bind(absl::string_view type_var, DType dtype) {
  bindings_.emplace_back(std::string(type_var), dtype);
  return *this;
}

OpBuilder& OpBuilder::At(Block::Position position) {
  position_ = position;
  return *this;
}

OpBuilder& OpBuilder::Role(halftone::Role role) {
  role_ = role;
  return *this;
}

OpBuilder& OpBuilder::Why(halftone::Decision decision) {
  decision_ = std::move(decision);
  return *this;
}

OpBuilder& OpBuilder::Origin(NameId name) {
  origins_.push_back(name);
  return *this;
}

OpBuilder& OpBuilder::Line(int line) {
  line_ = line;
  return *this;
}

absl::StatusOr<OpId> OpBuilder::Build() {
  Draft draft;
  const absl::Status status = Complete(draft);
  if (status.ok()) return AddTo(draft);
  return AtOp(status, block_->program(), line_, Label(draft),
              schema_ == nullptr ? unknown_ : schema_->name());
}

std::string OpBuilder::Label(const Draft& draft) const {
  const NameId name = draft.op_name.valid() ? draft.op_name
                      : name_.valid()       ? name_
                      : !outputs_.empty()   ? outputs_[0].item
                                            : NameId();
  return name.valid() ? std::string(block_->program().name_of(name)) : "";
}

absl::Status OpBuilder::Complete(Draft& draft) {
  if (schema_ == nullptr) return UnknownOp(unknown_);
  HT_RETURN_IF_ERROR(wrong_);
  HT_RETURN_IF_ERROR(GatherInputs(draft));
  // Attr takes none but the schema's, of its kinds.
  if (schema_->requires_attrs()) {
    HT_RETURN_IF_ERROR(CheckAttrs(*schema_, attrs_));
  }
  draft.attrs = block_->program().attrs().InternFrom(absl::MakeSpan(attrs_));
  HT_RETURN_IF_ERROR(NameOutputs(draft));
  if (draft.lacks_implicit) HT_RETURN_IF_ERROR(FillImplicit(draft));
  return FindOutputTypes(draft);
}

absl::Status OpBuilder::GatherInputs(Draft& draft) {
  SortBySlot(inputs_);
  const absl::Span<const Slot> slots = schema_->inputs();
  bool fits = true;
  auto given = inputs_.begin();
  for (int s = 0; s < static_cast<int>(slots.size()); ++s) {
    const auto first = given;
    for (; given != inputs_.end() && given->slot == s; ++given) {
      const ValueId value = given->item;
      if (!value.valid() || value.index() >= block_->value_limit() ||
          block_->value(value).erased) {
        return CompilerBug("slot ", slots[s].name,
                           ": expected a value of this block");
      }
      draft.inputs.Add(value);
    }
    draft.inputs.EndSlot();
    const bool implicit = given == first && !slots[s].implicit.empty();
    draft.lacks_implicit |= implicit;
    fits &= implicit || TakesMembers(slots[s], given - first);
  }
  return fits ? absl::OkStatus() : ArityError(draft);
}

// What CheckArity says of the inputs, once it is known to say something.
absl::Status OpBuilder::ArityError(const Draft& draft) const {
  const absl::Span<const Slot> slots = schema_->inputs();
  std::vector<int> counts;
  for (int s = 0; s < draft.inputs.slots(); ++s) {
    const int members = draft.inputs.end(s) - draft.inputs.begin(s);
    counts.push_back(members == 0 && !slots[s].implicit.empty() ? 1 : members);
  }
  return CheckArity(slots, counts);
}

bool OpBuilder::IsTaken(NameId name, const Draft& draft) const {
  return block_->FindValue(name).valid() || draft.output_names.Has(name);
}

absl::Status OpBuilder::FreeName(int slot, const Draft& draft,
                                 NameId* name) const {
  const ValueId other = block_->FindValue(*name);
  Program& program = block_->program();
  const absl::string_view text = program.name_of(*name);
  if (unique_) {
    *name = block_->UniqueValueName(*name);
    for (int n = 1; draft.output_names.Has(*name); ++n) {
      *name = block_->UniqueValueName(
          program.InternName(absl::StrCat(text, ".", n)));
    }
    return absl::OkStatus();
  }
  const OpId by = other.valid() ? block_->value(other).op() : OpId();
  const int line = by.valid() ? block_->op(by).line : 0;
  return ModelError(
      "slot ", schema_->outputs()[slot].name, ": two definitions of ", text,
      "; the other is ",
      by.valid()      ? absl::StrCat("op ", block_->name(block_->op(by)))
      : other.valid() ? "a feed, cell or constant"
                      : "in this op",
      line > 0 ? absl::StrCat(" in line ", line) : "", "; rename one");
}

// Given names first: an output that has none takes the op's, and the op may
// take the first output's.
absl::Status OpBuilder::NameOutputs(Draft& draft) {
  SortBySlot(outputs_);
  Program& program = block_->program();
  const absl::Span<const Slot> slots = schema_->outputs();
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const int s = outputs_[i].slot;
    if (i > 0 && outputs_[i - 1].slot == s && !slots[s].list()) {
      return ModelError(
          "slot ", slots[s].name, ": expected one name, found ",
          std::count_if(outputs_.begin(), outputs_.end(),
                        [s](const auto& given) { return given.slot == s; }),
          "; this slot is no list");
    }
  }
  const bool is_only = outputs_.size() == 1 && slots.size() == 1;
  NameId op_name = name_;
  for (Given<NameId>& output : outputs_) {
    if (IsTaken(output.item, draft)) {
      HT_RETURN_IF_ERROR(FreeName(output.slot, draft, &output.item));
    }
    if (!is_only) draft.output_names.Add(output.item);
    if (!op_name.valid()) op_name = output.item;
  }
  if (!op_name.valid()) op_name = program.InternName(schema_->name());
  draft.op_name = block_->UniqueOpName(op_name);
  auto given = outputs_.begin();
  for (int s = 0; s < static_cast<int>(slots.size()); ++s) {
    if ((given == outputs_.end() || given->slot != s) && !slots[s].optional() &&
        !slots[s].list()) {
      NameId name = program.names().Append(draft.op_name,
                                           absl::StrCat(".", slots[s].name));
      if (IsTaken(name, draft)) HT_RETURN_IF_ERROR(FreeName(s, draft, &name));
      draft.output_names.Add(name);
      draft.outputs.Add({name, TypeId()});
    }
    for (; given != outputs_.end() && given->slot == s; ++given) {
      draft.outputs.Add({given->item, TypeId()});
    }
    draft.outputs.EndSlot();
  }
  return absl::OkStatus();
}

absl::Status OpBuilder::FillImplicit(Draft& draft) const {
  const absl::Span<const Slot> slots = schema_->inputs();
  SlotValues filled;
  for (size_t s = 0; s < slots.size(); ++s) {
    for (ValueId value : draft.inputs.slot(s)) filled.Add(value);
    if (!slots[s].implicit.empty() && !draft.inputs.has(s)) {
      HT_ASSIGN_OR_RETURN(const ValueId value,
                          WellKnownValue(block_, slots[s].implicit));
      filled.Add(value);
    }
    filled.EndSlot();
  }
  draft.inputs = std::move(filled);
  return absl::OkStatus();
}

OpId OpBuilder::AddTo(Draft& draft) {
  const OpId id = block_->AddOp(schema_, draft.op_name, std::move(draft.inputs),
                                draft.outputs, draft.attrs, position_);
  Op& op = block_->mutable_op(id);
  op.role = role_;
  op.decision = std::move(decision_);
  op.origins = std::move(origins_);
  op.line = line_;
  return id;
}

}  // namespace halftone
