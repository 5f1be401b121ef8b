#include "graph/schema/infer_context.h"

#include <utility>

#include "absl/strings/str_join.h"
#include "graph/base/check.h"

namespace halftone {
namespace {

int CheckedSlot(int index, const OpSchema& schema, absl::string_view slot) {
  HT_CHECK(index >= 0,
           absl::StrCat(schema.name(), " has no slot ", slot).c_str());
  return index;
}

}  // namespace

bool InferContext::HasInput(absl::string_view slot) const {
  return !InputList(slot).empty();
}

const TensorType& InferContext::Input(absl::string_view slot) const {
  const TypeList types = InputList(slot);
  HT_CHECK(types.size() == 1,
           absl::StrCat(schema_.name(), ": not one value in ", slot).c_str());
  return types[0];
}

TypeList InferContext::InputList(absl::string_view slot) const {
  return TypeList(inputs_[CheckedSlot(schema_.FindInput(slot), schema_, slot)]);
}

const AttrValue& InferContext::Attr(absl::string_view name) const {
  const int index = schema_.FindAttr(name);
  HT_CHECK(index >= 0,
           absl::StrCat(schema_.name(), " has no attribute ", name).c_str());
  const AttrValue* set = FindSetAttr(attrs_, index);
  return set != nullptr ? *set : schema_.attrs()[index].default_value;
}

int InferContext::OutputCount(absl::string_view slot) const {
  return static_cast<int>(
      outputs_[CheckedSlot(schema_.FindOutput(slot), schema_, slot)].size());
}

void InferContext::SetOutput(absl::string_view slot, Dims dims, int i) {
  if (i >= OutputCount(slot)) return;
  outputs_[schema_.FindOutput(slot)][i].dims = std::move(dims);
}

void InferContext::SetOutputLayout(absl::string_view slot,
                                   halftone::Layout layout, int i) {
  if (i >= OutputCount(slot)) return;
  const int s = schema_.FindOutput(slot);
  outputs_[s][i].layout = layout;
  set_layouts_.resize(outputs_.size());
  set_layouts_[s].resize(outputs_[s].size());
  set_layouts_[s][i] = true;
}

bool InferContext::LayoutIsSet(int output_slot, int i) const {
  const auto s = static_cast<size_t>(output_slot);
  return s < set_layouts_.size() && !set_layouts_[s].empty() &&
         set_layouts_[s][i];
}

absl::Status InferContext::SlotError(absl::string_view slot,
                                     absl::string_view expected) const {
  const int index = schema_.FindInput(slot);
  std::string found = "nothing";
  if (index >= 0 && inputs_[index].size() == 1) {
    found = Print(*inputs_[index][0]);
  } else if (index >= 0 && !inputs_[index].empty()) {
    found = absl::StrCat(
        "[",
        absl::StrJoin(inputs_[index], ", ",
                      [this](std::string* out, const TensorType* type) {
                        out->append(Print(*type));
                      }),
        "]");
  }
  return Error("slot ", slot, ": expected ", expected, ", found ", found);
}

}  // namespace halftone
