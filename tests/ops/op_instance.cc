#include "tests/ops/op_instance.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/schema/op_builder.h"

namespace halftone {
namespace {

bool Contains(const std::vector<std::string>& list, absl::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

const Slot& InputSlot(const CaseFile& file, const CaseTensor& tensor) {
  return file.schema->inputs()[file.schema->FindInput(tensor.slot)];
}
const Slot& OutputSlot(const CaseFile& file, const CaseTensor& tensor) {
  return file.schema->outputs()[file.schema->FindOutput(tensor.slot)];
}

// Whether a tensor of the case has this type variable.
bool InputBinds(const CaseFile& file, const OpCase& c, const TypeVar& var) {
  return std::any_of(c.in.begin(), c.in.end(), [&](const CaseTensor& t) {
    const Slot& slot = InputSlot(file, t);
    return slot.type == var.name && !slot.shape_only();
  });
}
bool OutputBinds(const CaseFile& file, const OpCase& c, const TypeVar& var) {
  return std::any_of(c.out.begin(), c.out.end(), [&](const CaseTensor& t) {
    return OutputSlot(file, t).type == var.name;
  });
}

DType DTypeIn(const CaseFile& file, const Slot& slot, const KernelKey& key) {
  const int var = file.schema->FindTypeVar(slot.type);
  if (var < 0) return *DTypeFromName(slot.type);
  return slot.shape_only() ? DType::kF32 : key.binding[var];
}

Layout LayoutIn(const CaseFile& file, const CaseTensor& tensor,
                const KernelKey& key) {
  if (tensor.dims.size() != 4) return Layout::kRowMajor;
  return Contains(file.row_major, tensor.slot) ? Layout::kRowMajor : key.layout;
}

// The attribute that says an output's dtype (`to`, `dtype`), or empty.
std::string DTypeAttr(const OpSchema& schema) {
  for (const AttrSpec& attr : schema.attrs()) {
    if (KindOf(attr.default_value) == AttrKind::kDType) return attr.name;
  }
  return "";
}

void AddInputs(const CaseFile& file, const OpCase& c, const KernelKey& key,
               Block* block, OpBuilder* builder,
               std::map<ValueId, const CaseTensor*>* tensors) {
  for (const CaseTensor& tensor : c.in) {
    TensorType type;
    type.dtype = DTypeIn(file, InputSlot(file, tensor), key);
    type.layout = LayoutIn(file, tensor, key);
    for (int64_t d : tensor.dims) type.dims.push_back(Dim(d));
    const ValueId value =
        block->AddFeed(absl::StrCat("in", tensors->size()), type);
    (*tensors)[value] = &tensor;
    builder->In(tensor.slot, value);
  }
}

void AddOutputs(const CaseFile& file, const OpCase& c, const KernelKey& key,
                OpBuilder* builder) {
  for (size_t i = 0; i < c.out.size(); ++i) {
    builder->Out(c.out[i].slot, absl::StrCat("out", i));
  }
  const std::string attr = DTypeAttr(*file.schema);
  for (size_t v = 0; v < key.binding.size(); ++v) {
    const TypeVar& var = file.schema->type_vars()[v];
    if (InputBinds(file, c, var) || !OutputBinds(file, c, var)) continue;
    if (attr.empty()) {
      builder->Bind(var.name, key.binding[v]);
    } else {
      builder->Attr(attr, key.binding[v]);
    }
  }
}

// Puts the expected tensors in the order of the op's outputs.
absl::Status MatchOutputs(const CaseFile& file, const OpCase& c,
                          OpInstance* instance) {
  const Op& op = instance->block->op(instance->op);
  for (int s = 0; s < op.outputs.slots(); ++s) {
    const std::string& slot = file.schema->outputs()[s].name;
    std::vector<const CaseTensor*> expected;
    for (const CaseTensor& t : c.out) {
      if (t.slot == slot) expected.push_back(&t);
    }
    const auto values = op.outputs.slot(s);
    if (expected.size() != values.size()) {
      return ModelError("slot ", slot, ": the case expects ", expected.size(),
                        " values, the op has ", values.size());
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const kernels::TensorDesc desc =
          kernels::Bind(instance->block->type(values[i]), SymbolValues());
      if (!std::equal(desc.dims.begin(), desc.dims.end(),
                      expected[i]->dims.begin(), expected[i]->dims.end())) {
        return ModelError("slot ", slot, ": inferred ", kernels::ToString(desc),
                          ", not the case's dims");
      }
      instance->outputs.push_back(expected[i]);
    }
  }
  return absl::OkStatus();
}

}  // namespace

KernelKey ParseKernelKey(absl::string_view text) {
  const size_t open = text.find('('), close = text.find(')');
  HT_CHECK(close != absl::string_view::npos, "a key without a binding");
  KernelKey key;
  key.op = std::string(text.substr(0, open));
  for (absl::string_view name : absl::StrSplit(
           text.substr(open + 1, close - open - 1), ',', absl::SkipEmpty())) {
    key.binding.push_back(DTypeFromName(name).value_or(DType::kInvalid));
  }
  if (text.substr(close + 1) == "@channels_last") {
    key.layout = Layout::kChannelsLast;
  }
  return key;
}

bool Binds(const CaseFile& file, const OpCase& c, const TypeVar& var) {
  return InputBinds(file, c, var) || OutputBinds(file, c, var);
}

bool Fits(const CaseFile& file, const OpCase& c, const KernelKey& key) {
  for (size_t v = 0; v < key.binding.size(); ++v) {
    const TypeVar& var = file.schema->type_vars()[v];
    const bool bound = Binds(file, c, var);
    if (bound != (key.binding[v] != DType::kInvalid)) return false;
    const auto only = c.only.find(var.name);
    if (only != c.only.end() &&
        std::find(only->second.begin(), only->second.end(), key.binding[v]) ==
            only->second.end()) {
      return false;
    }
  }
  if (key.layout == Layout::kRowMajor) return true;
  // The lead tensor is the first that is there, in the schema's order.
  for (const Slot& slot : file.schema->inputs()) {
    for (const CaseTensor& tensor : c.in) {
      if (tensor.slot != slot.name) continue;
      return LayoutIn(file, tensor, key) == key.layout;
    }
  }
  return false;
}

absl::StatusOr<OpInstance> MakeInstance(const CaseFile& file, const OpCase& c,
                                        const KernelKey& key) {
  OpInstance instance;
  instance.program = std::make_unique<Program>();
  instance.block = &instance.program->AddEntry("test").block();
  std::map<ValueId, const CaseTensor*> tensors;
  OpBuilder builder(instance.block, file.schema->name());
  builder.Name("op");
  AddInputs(file, c, key, instance.block, &builder, &tensors);
  for (const auto& [name, value] : c.attrs) builder.Attr(name, value);
  AddOutputs(file, c, key, &builder);
  HT_ASSIGN_OR_RETURN(instance.op, builder.Build());
  const Op& op = instance.block->op(instance.op);
  for (ValueId value : op.inputs.all()) {
    const auto tensor = tensors.find(value);
    if (tensor == tensors.end()) {
      return ModelError("the case gives no value for ",
                        instance.block->name(value));
    }
    instance.inputs.push_back(tensor->second->values);
  }
  HT_RETURN_IF_ERROR(MatchOutputs(file, c, &instance));
  return instance;
}

}  // namespace halftone
