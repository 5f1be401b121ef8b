#include "graph/schema/op_schema.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "graph/base/check.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/ir/op.h"

namespace halftone {
namespace {

AttrValue ZeroOf(AttrKind kind) {
  switch (kind) {
    case AttrKind::kBool:
      return false;
    case AttrKind::kInt:
      return int64_t{0};
    case AttrKind::kFloat:
      return 0.0;
    case AttrKind::kString:
      return std::string();
    case AttrKind::kInts:
      return std::vector<int64_t>();
    case AttrKind::kFloats:
      return std::vector<double>();
    case AttrKind::kStrings:
      return std::vector<std::string>();
    case AttrKind::kDType:
      return DType::kInvalid;
  }
  return false;
}

template <typename Items>
absl::Status CheckDistinct(const Items& items, absl::string_view op,
                           absl::string_view what) {
  absl::flat_hash_set<absl::string_view> seen;
  for (const auto& item : items) {
    if (!seen.insert(item.name).second) {
      return CompilerBug("op ", op, ": two ", what, " are named ", item.name);
    }
  }
  return absl::OkStatus();
}

}  // namespace

const DTypeSet& kFloatTypes =
    *new DTypeSet{DType::kF32, DType::kF16, DType::kBF16};
const DTypeSet& kLowTypes = *new DTypeSet{DType::kF16, DType::kBF16};
const DTypeSet& kAnyTypes =
    *new DTypeSet{DType::kF32, DType::kF16, DType::kBF16, DType::kF64,
                  DType::kI32, DType::kI64, DType::kU8,   DType::kBool};

absl::string_view Name(AmpClass c) {
  switch (c) {
    case AmpClass::kWhite:
      return "white";
    case AmpClass::kBlack:
      return "black";
    case AmpClass::kGray:
      return "gray";
    case AmpClass::kClear:
      return "clear";
  }
  return "";
}

// ---- Declaration.

OpSchema& OpSchema::Doc(absl::string_view doc) {
  doc_ = std::string(doc);
  return *this;
}

OpSchema& OpSchema::TypeVar(absl::string_view name, DTypeSet allowed,
                            absl::string_view default_to) {
  type_vars_.push_back(
      {std::string(name), std::move(allowed), std::string(default_to)});
  return *this;
}

OpSchema& OpSchema::In(absl::string_view name, absl::string_view type,
                       absl::string_view doc, uint32_t flags) {
  input_words_.Add(name);
  inputs_.push_back(
      {std::string(name), std::string(type), std::string(doc), flags});
  return *this;
}

OpSchema& OpSchema::ImplicitIn(absl::string_view name, absl::string_view type,
                               absl::string_view well_known, uint32_t flags) {
  In(name, type, well_known, flags);
  inputs_.back().implicit = std::string(well_known);
  return *this;
}

OpSchema& OpSchema::Out(absl::string_view name, absl::string_view type,
                        absl::string_view doc, uint32_t flags) {
  output_words_.Add(name);
  outputs_.push_back(
      {std::string(name), std::string(type), std::string(doc), flags});
  return *this;
}

OpSchema& OpSchema::MayAlias(absl::string_view output,
                             absl::string_view input) {
  const int from = FindInput(input);
  const int to = FindOutput(output);
  HT_CHECK(from >= 0 && to >= 0, (name_ + ": MayAlias of no slot").c_str());
  outputs_[to].may_alias = from + 1;
  return *this;
}

OpSchema& OpSchema::Lossy(absl::string_view input) {
  const int slot = FindInput(input);
  HT_CHECK(slot >= 0, (name_ + ": Lossy of no slot").c_str());
  inputs_[slot].flags |= kLossy;
  return *this;
}

OpSchema& OpSchema::Attr(absl::string_view name, AttrValue default_value,
                         absl::string_view doc) {
  attr_words_.Add(name);
  attrs_.push_back(
      {std::string(name), std::move(default_value), false, std::string(doc)});
  return *this;
}

OpSchema& OpSchema::RequiredAttr(absl::string_view name, AttrKind kind,
                                 absl::string_view doc) {
  attr_words_.Add(name);
  attrs_.push_back({std::string(name), ZeroOf(kind), true, std::string(doc)});
  requires_attrs_ = true;
  return *this;
}

OpSchema& OpSchema::StreamAttr(absl::string_view doc) {
  stream_attr_ = static_cast<int>(attrs_.size());
  return Attr("stream", int64_t{0}, doc);
}

OpSchema& OpSchema::Infer(std::function<absl::Status(InferContext&)> infer) {
  infer_ = std::move(infer);
  return *this;
}

OpSchema& OpSchema::Grad(std::function<absl::Status(GradContext&)> grad) {
  grad_ = std::move(grad);
  return *this;
}

OpSchema& OpSchema::NoGrad() {
  no_grad_ = true;
  return *this;
}

OpSchema& OpSchema::Amp(AmpClass amp_class) {
  amp_ = amp_class;
  amp_set_ = true;
  return *this;
}

OpSchema& OpSchema::AmpWhere(absl::string_view attr, absl::string_view value,
                             AmpClass amp_class) {
  amp_where_attr_ = FindAttr(attr);
  HT_CHECK(
      amp_where_attr_ >= 0 &&
          KindOf(attrs_[amp_where_attr_].default_value) == AttrKind::kString,
      (name_ + ": AmpWhere of no string attribute").c_str());
  amp_where_value_ = std::string(value);
  amp_where_class_ = amp_class;
  return *this;
}

OpSchema& OpSchema::Accumulate(DType dtype) {
  accumulate_ = dtype;
  return *this;
}

OpSchema& OpSchema::Layout(LayoutRule rule) {
  layout_ = rule;
  return *this;
}

OpSchema& OpSchema::ToTest(absl::string_view to) {
  to_test_ = std::string(to);
  return *this;
}

OpSchema& OpSchema::Guarded() {
  guarded_ = true;
  return *this;
}

OpSchema& OpSchema::NoMerge() {
  no_merge_ = true;
  return *this;
}

OpSchema& OpSchema::SplitOnly() {
  split_only_ = true;
  return *this;
}

OpSchema& OpSchema::ElementWise() {
  element_wise_ = true;
  return *this;
}

OpSchema& OpSchema::Version(int version) {
  version_ = version;
  return *this;
}

// ---- Reading.

int OpSchema::FindTypeVar(absl::string_view name) const {
  for (size_t i = 0; i < type_vars_.size(); ++i) {
    if (type_vars_[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

AmpClass OpSchema::amp(const Op& op) const {
  if (amp_where_attr_ < 0) return amp_;
  const AttrValue& value = GetAttr(op, attrs_[amp_where_attr_].name);
  const std::string* word = std::get_if<std::string>(&value);
  return word != nullptr && *word == amp_where_value_ ? amp_where_class_ : amp_;
}

absl::Status OpSchema::RunInfer(InferContext& context) const {
  return infer_(context);
}

absl::Status OpSchema::RunGrad(GradContext& context) const {
  if (!grad_) return ModelError("op ", name_, " has no gradient");
  return grad_(context);
}

// ---- Checks.

absl::Status OpSchema::Check() const {
  const auto missing = [this](absl::string_view what) {
    return CompilerBug("op ", name_, ": ", what);
  };
  if (name_.empty()) return missing("no name");
  if (doc_.empty()) return missing("no Doc");
  if (!infer_) return missing("no Infer");
  if (static_cast<bool>(grad_) == no_grad_) {
    return missing("expected either Grad or NoGrad()");
  }
  if (!amp_set_) return missing("no Amp class");
  if (outputs_.empty()) return missing("no output");
  HT_RETURN_IF_ERROR(CheckDistinct(inputs_, name_, "inputs"));
  HT_RETURN_IF_ERROR(CheckDistinct(outputs_, name_, "outputs"));
  HT_RETURN_IF_ERROR(CheckDistinct(attrs_, name_, "attributes"));
  HT_RETURN_IF_ERROR(CheckDistinct(type_vars_, name_, "type variables"));
  HT_RETURN_IF_ERROR(CheckTypeVars());
  for (const Slot& slot : inputs_) HT_RETURN_IF_ERROR(CheckSlot(slot));
  for (const Slot& slot : outputs_) HT_RETURN_IF_ERROR(CheckSlot(slot));
  const int found_inf = FindInput("FoundInf");
  if (guarded_ && (found_inf < 0 || inputs_[found_inf].type != "bool")) {
    return missing("Guarded, but no input FoundInf of type bool");
  }
  return absl::OkStatus();
}

void OpSchema::ResolveSlotTypes() {
  for (std::vector<Slot>* slots : {&inputs_, &outputs_}) {
    for (Slot& slot : *slots) {
      slot.type_var = FindTypeVar(slot.type);
      if (slot.type_var < 0) {
        slot.fixed = DTypeFromName(slot.type).value_or(DType::kInvalid);
      }
    }
  }
}

absl::Status OpSchema::CheckTypeVars() const {
  for (const halftone::TypeVar& var : type_vars_) {
    if (DTypeFromName(var.name).has_value() || var.allowed.empty()) {
      return CompilerBug("op ", name_, ": type variable ", var.name,
                         " is named as a dtype or allows none");
    }
    if (!var.default_to.empty() && FindTypeVar(var.default_to) < 0 &&
        !DTypeFromName(var.default_to).has_value()) {
      return CompilerBug("op ", name_, ": type variable ", var.name,
                         " defaults to ", var.default_to,
                         ", which is neither a variable nor a dtype");
    }
  }
  return absl::OkStatus();
}

absl::Status OpSchema::CheckSlot(const Slot& slot) const {
  if (slot.mixed() && !slot.list()) {
    return CompilerBug("op ", name_, ": slot ", slot.name,
                       " is kMixed, but no list");
  }
  if (!slot.mixed() && FindTypeVar(slot.type) < 0 &&
      !DTypeFromName(slot.type).has_value()) {
    return CompilerBug("op ", name_, ": slot ", slot.name, " has type ",
                       slot.type, ", which is neither a variable nor a dtype");
  }
  if (!slot.implicit.empty() && slot.implicit[0] != '@') {
    return CompilerBug("op ", name_, ": slot ", slot.name, ": ", slot.implicit,
                       " is not a well-known name");
  }
  return absl::OkStatus();
}

// ---- Attributes of an op.

const AttrValue* FindSetAttr(AttrSpan attrs, int index) {
  const auto it =
      std::lower_bound(attrs.begin(), attrs.end(), index,
                       [](const auto& attr, int i) { return attr.first < i; });
  return it != attrs.end() && it->first == index ? &it->second : nullptr;
}
const AttrValue& GetAttr(const Op& op, absl::string_view name) {
  const int index = op.schema->FindAttr(name);
  HT_CHECK(
      index >= 0,
      (op.schema->name() + " has no attribute " + std::string(name)).c_str());
  const AttrValue* set = FindSetAttr(op.attrs, index);
  return set != nullptr ? *set : op.schema->attrs()[index].default_value;
}

void SetAttr(const OpSchema& schema, absl::string_view name, AttrValue value,
             AttrList* attrs) {
  const int index = schema.FindAttr(name);
  HT_CHECK(index >= 0 &&
               KindOf(schema.attrs()[index].default_value) == KindOf(value),
           (schema.name() +
            " has no such attribute of that kind: " + std::string(name))
               .c_str());
  SetAttrAt(index, std::move(value), attrs);
}

}  // namespace halftone
