#include "graph/schema/op_builder.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/schema/attr_coercion.h"
#include "graph/schema/infer_context.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/place.h"
#include "graph/schema/type_rules.h"

namespace halftone {
namespace {

template <typename Items>
std::vector<std::string> NamesOf(const Items& items) {
  std::vector<std::string> names;
  for (const auto& item : items) names.push_back(item.name);
  return names;
}

template <typename T>
std::vector<T>& ItemsOf(
    std::vector<std::pair<std::string, std::vector<T>>>& slots,
    absl::string_view slot) {
  for (auto& [name, items] : slots) {
    if (name == slot) return items;
  }
  slots.emplace_back(std::string(slot), std::vector<T>());
  return slots.back().second;
}

absl::Status UnknownOp(absl::string_view type) {
  std::vector<std::string> names = Ops().Names();
  for (const auto& alias : Ops().Aliases()) names.push_back(alias.first);
  return ModelError("unknown op ", type, NearestHint(type, names));
}

}  // namespace

OpBuilder::OpBuilder(Block* block, absl::string_view op_type)
    : block_(block), type_(op_type), schema_(Ops().Find(op_type)) {
  if (schema_ != nullptr) type_ = schema_->name();
}

OpBuilder& OpBuilder::Name(absl::string_view name) {
  name_ = std::string(name);
  return *this;
}

OpBuilder& OpBuilder::In(absl::string_view slot, ValueId value) {
  if (value.valid()) ItemsOf(inputs_, slot).push_back(value);
  return *this;
}

OpBuilder& OpBuilder::In(absl::string_view slot,
                         absl::Span<const ValueId> values) {
  std::vector<ValueId>& items = ItemsOf(inputs_, slot);
  items.insert(items.end(), values.begin(), values.end());
  return *this;
}

OpBuilder& OpBuilder::In(absl::string_view slot,
                         std::initializer_list<ValueId> values) {
  return In(slot, absl::Span<const ValueId>(values.begin(), values.size()));
}

OpBuilder& OpBuilder::Attr(absl::string_view name, AttrValue value) {
  for (auto& [known, old] : attrs_) {
    if (known == name) {
      old = std::move(value);
      return *this;
    }
  }
  attrs_.emplace_back(std::string(name), std::move(value));
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
  ItemsOf(outputs_, slot).emplace_back(name);
  return *this;
}

OpBuilder& OpBuilder::Out(absl::string_view slot, absl::string_view name,
                          const TensorType& type) {
  mixed_types_.emplace_back(std::string(slot), type);
  return Out(slot, name);
}

OpBuilder& OpBuilder::FirstOut(absl::string_view name) {
  if (schema_ == nullptr) return *this;
  std::vector<std::string>& names =
      ItemsOf(outputs_, schema_->outputs()[0].name);
  if (names.empty()) names.emplace_back(name);
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
  decision_ = decision;
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

// What is known of the op so far, by slot in the schema's order.
struct OpBuilder::Draft {
  std::string op_name;
  std::vector<std::vector<ValueId>> inputs;
  AttrList attrs;
  std::vector<std::vector<std::string>> outputs;
  // All of `outputs`: an update has one for every parameter and slot.
  absl::flat_hash_set<std::string> output_names;
  SlotTypes output_types;
};

absl::StatusOr<OpId> OpBuilder::Build() {
  Draft draft;
  const absl::Status status =
      schema_ == nullptr ? UnknownOp(type_) : Complete(draft);
  if (status.ok()) return AddTo(draft);
  std::string label = draft.op_name.empty() ? name_ : draft.op_name;
  for (const auto& [slot, names] : outputs_) {
    if (label.empty() && !names.empty()) label = names[0];
  }
  return AtOp(status, block_->program(), line_, label, type_);
}

absl::Status OpBuilder::Complete(Draft& draft) const {
  HT_RETURN_IF_ERROR(GatherInputs(draft));
  HT_RETURN_IF_ERROR(GatherAttrs(draft));
  HT_RETURN_IF_ERROR(GatherOutputs(draft));
  HT_RETURN_IF_ERROR(NameOutputs(draft));
  HT_RETURN_IF_ERROR(FillImplicit(draft));
  return InferOutputs(draft);
}

absl::Status OpBuilder::GatherInputs(Draft& draft) const {
  draft.inputs.resize(schema_->inputs().size());
  for (const auto& [name, values] : inputs_) {
    const int slot = schema_->FindInput(name);
    if (slot < 0) {
      return ModelError("no input slot ", name,
                        NearestHint(name, NamesOf(schema_->inputs())));
    }
    for (ValueId value : values) {
      if (!value.valid() || value.index() >= block_->value_limit() ||
          block_->value(value).erased) {
        return CompilerBug("slot ", name, ": expected a value of this block");
      }
    }
    draft.inputs[slot] = values;
  }
  std::vector<int> counts;
  for (size_t s = 0; s < draft.inputs.size(); ++s) {
    const bool implicit = !schema_->inputs()[s].implicit.empty();
    const int n = static_cast<int>(draft.inputs[s].size());
    counts.push_back(implicit && n == 0 ? 1 : n);
  }
  return CheckArity(schema_->inputs(), counts);
}

absl::Status OpBuilder::GatherAttrs(Draft& draft) const {
  for (const auto& [name, value] : attrs_) {
    const int index = schema_->FindAttr(name);
    if (index < 0) {
      return ModelError("no attribute ", name,
                        NearestHint(name, NamesOf(schema_->attrs())));
    }
    const AttrKind kind = KindOf(schema_->attrs()[index].default_value);
    std::optional<AttrValue> coerced = CoerceAttr(value, kind);
    if (!coerced.has_value()) {
      return ModelError("attribute ", name, ": expected ", halftone::Name(kind),
                        ", found ", halftone::Name(KindOf(value)),
                        "; write it as ", halftone::Name(kind));
    }
    draft.attrs.emplace_back(static_cast<int16_t>(index), *std::move(coerced));
  }
  std::sort(draft.attrs.begin(), draft.attrs.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return CheckAttrs(*schema_, draft.attrs);
}

absl::Status OpBuilder::GatherOutputs(Draft& draft) const {
  draft.outputs.resize(schema_->outputs().size());
  for (const auto& [name, names] : outputs_) {
    const int slot = schema_->FindOutput(name);
    if (slot < 0) {
      return ModelError("no output slot ", name,
                        NearestHint(name, NamesOf(schema_->outputs())));
    }
    if (names.size() > 1 && !schema_->outputs()[slot].list()) {
      return ModelError("slot ", name, ": expected one name, found ",
                        names.size(), "; this slot is no list");
    }
    draft.outputs[slot] = names;
  }
  return absl::OkStatus();
}

absl::Status OpBuilder::FreeName(absl::string_view slot, const Draft& draft,
                                 std::string* name) const {
  const auto taken_here = [&draft](absl::string_view candidate) {
    return draft.output_names.contains(candidate);
  };
  const ValueId other = block_->FindValue(*name);
  if (!other.valid() && !taken_here(*name)) return absl::OkStatus();
  if (unique_) {
    std::string base = *name;
    *name = block_->UniqueValueName(base);
    for (int n = 1; taken_here(*name); ++n) {
      *name = block_->UniqueValueName(absl::StrCat(base, ".", n));
    }
    return absl::OkStatus();
  }
  const OpId by = other.valid() ? block_->value(other).op() : OpId();
  const int line = by.valid() ? block_->op(by).line : 0;
  return ModelError(
      "slot ", slot, ": two definitions of ", *name, "; the other is ",
      by.valid()      ? absl::StrCat("op ", block_->name(block_->op(by)))
      : other.valid() ? "a feed, cell or constant"
                      : "in this op",
      line > 0 ? absl::StrCat(" in line ", line) : "", "; rename one");
}

absl::Status OpBuilder::NameOutputs(Draft& draft) const {
  std::vector<std::vector<std::string>> wanted(draft.outputs.size());
  wanted.swap(draft.outputs);
  draft.op_name = name_;
  for (size_t s = 0; s < wanted.size(); ++s) {
    for (std::string& name : wanted[s]) {
      HT_RETURN_IF_ERROR(FreeName(schema_->outputs()[s].name, draft, &name));
      draft.output_names.insert(name);
      draft.outputs[s].push_back(name);
      if (draft.op_name.empty()) draft.op_name = name;
    }
  }
  if (draft.op_name.empty()) draft.op_name = type_;
  draft.op_name = block_->UniqueOpName(draft.op_name);
  for (size_t s = 0; s < draft.outputs.size(); ++s) {
    const Slot& slot = schema_->outputs()[s];
    if (!draft.outputs[s].empty() || slot.optional() || slot.list()) continue;
    std::string name = absl::StrCat(draft.op_name, ".", slot.name);
    HT_RETURN_IF_ERROR(FreeName(slot.name, draft, &name));
    draft.output_names.insert(name);
    draft.outputs[s].push_back(name);
  }
  return absl::OkStatus();
}

absl::Status OpBuilder::FillImplicit(Draft& draft) const {
  for (size_t s = 0; s < draft.inputs.size(); ++s) {
    const Slot& slot = schema_->inputs()[s];
    if (slot.implicit.empty() || !draft.inputs[s].empty()) continue;
    HT_ASSIGN_OR_RETURN(const ValueId value,
                        WellKnownValue(block_, slot.implicit));
    draft.inputs[s].push_back(value);
  }
  return absl::OkStatus();
}

absl::Status OpBuilder::InferOutputs(Draft& draft) const {
  const absl::Span<const std::string> symbols = block_->program().symbols();
  SlotTypes inputs(draft.inputs.size());
  for (size_t s = 0; s < inputs.size(); ++s) {
    for (ValueId value : draft.inputs[s]) {
      inputs[s].push_back(block_->type(value));
    }
  }
  TypeBinder binder(*schema_, symbols);
  HT_RETURN_IF_ERROR(binder.BindInputs(inputs));
  for (const auto& [name, dtype] : bindings_) {
    HT_RETURN_IF_ERROR(binder.Bind(name, dtype));
  }
  HT_RETURN_IF_ERROR(binder.BindFromAttr(draft.attrs));
  binder.BindDefaults();

  std::vector<int> counts;
  for (const auto& names : draft.outputs) counts.push_back(names.size());
  InferContext context(*schema_, draft.op_name, inputs, draft.attrs, counts,
                       symbols);
  HT_RETURN_IF_ERROR(SetMixedTypes(context));
  HT_RETURN_IF_ERROR(binder.SetOutputDTypes(context));
  HT_RETURN_IF_ERROR(schema_->RunInfer(context));
  HT_RETURN_IF_ERROR(CheckSizes(context));
  FollowLayouts(inputs, context);
  draft.output_types = std::move(context.outputs());
  return absl::OkStatus();
}

absl::Status OpBuilder::SetMixedTypes(InferContext& context) const {
  for (size_t s = 0; s < context.outputs().size(); ++s) {
    const Slot& slot = schema_->outputs()[s];
    if (!slot.mixed()) continue;
    size_t member = 0;
    std::vector<TensorType>& types = context.outputs()[s];
    for (const auto& [name, type] : mixed_types_) {
      if (name == slot.name && member < types.size()) types[member++] = type;
    }
    if (member < types.size()) {
      return CompilerBug("slot ", slot.name, ": expected a type for each of ",
                         types.size(), " values, found ", member);
    }
  }
  return absl::OkStatus();
}

OpId OpBuilder::AddTo(Draft& draft) {
  std::vector<std::vector<Block::OutputSpec>> outputs(draft.outputs.size());
  for (size_t s = 0; s < outputs.size(); ++s) {
    for (size_t i = 0; i < draft.outputs[s].size(); ++i) {
      outputs[s].push_back({draft.outputs[s][i], draft.output_types[s][i]});
    }
  }
  const OpId id = block_->AddOp(schema_, draft.op_name, draft.inputs, outputs,
                                std::move(draft.attrs), position_);
  Op& op = block_->op(id);
  op.role = role_;
  op.decision = decision_;
  op.origins.assign(origins_.begin(), origins_.end());
  op.line = line_;
  return id;
}

}  // namespace halftone
