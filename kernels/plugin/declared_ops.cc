#include "kernels/plugin/declared_ops.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "kernels/plugin/declared_attrs.h"
#include "kernels/plugin/declared_gradient.h"
#include "kernels/plugin/declared_inference.h"

namespace halftone {
namespace kernels {
namespace {

constexpr uint32_t kAnyLayout = 1, kNoMerge = 2;  // OpFlags
constexpr uint32_t kKnownOpFlags = kAnyLayout | kNoMerge;
constexpr int kMost = 1000;  // of anything that is counted

bool IsIdentifier(const char* name) {
  if (name == nullptr) return false;
  const absl::string_view text(name);
  const auto fits = [](char c) { return absl::ascii_isalnum(c) || c == '_'; };
  return !text.empty() && text.size() <= 64 && !absl::ascii_isdigit(text[0]) &&
         std::all_of(text.begin(), text.end(), fits);
}

std::string Shown(const char* text) {
  return text == nullptr ? "nothing" : absl::StrCat("\"", text, "\"");
}

// One op; what is wrong begins with its name.
class Declaration {
 public:
  explicit Declaration(const HalftoneOp& op)
      : op_(op), schema_(TextOrEmpty(op.name)) {}

  absl::StatusOr<OpSchema> Run();

 private:
  template <typename... Parts>
  absl::Status Error(const Parts&... parts) const {
    return ModelError("op ", Shown(op_.name), ": ", parts...);
  }
  absl::Status CheckCounts() const;
  absl::Status AddTypeVars();
  absl::Status AddSlots(const HalftoneSlot* slots, int count, bool in);
  absl::Status AddAttrs();
  absl::Status AddClass();
  absl::Status CheckKernels() const;

  const HalftoneOp& op_;
  OpSchema schema_;
};

absl::Status Declaration::CheckCounts() const {
  const std::pair<int32_t, const void*> lists[] = {
      {op_.type_var_count, op_.type_vars}, {op_.input_count, op_.inputs},
      {op_.output_count, op_.outputs},     {op_.attr_count, op_.attrs},
      {op_.gradient_count, op_.gradient},  {op_.kernel_count, op_.kernels}};
  for (const auto& [count, data] : lists) {
    if (count < 0 || count > kMost || (count > 0 && data == nullptr)) {
      return Error("one of its lists has ", count,
                   " members or is null; expected 0 to ", kMost);
    }
  }
  if (op_.output_count == 0) return Error("expected an output, found none");
  if (op_.version < 1) {
    return Error("version: expected 1 or more, found ", op_.version);
  }
  return absl::OkStatus();
}

absl::Status Declaration::AddTypeVars() {
  for (int i = 0; i < op_.type_var_count; ++i) {
    const HalftoneTypeVar& var = op_.type_vars[i];
    if (!IsIdentifier(var.name)) {
      return Error("type variable ", i, ": expected a name, found ",
                   Shown(var.name));
    }
    if (var.dtype_count < 1 || var.dtype_count > 8 || var.dtypes == nullptr) {
      return Error("type variable ", var.name,
                   ": expected 1 to 8 dtypes, found ", var.dtype_count);
    }
    DTypeSet allowed;
    for (int d = 0; d < var.dtype_count; ++d) {
      if (var.dtypes[d] < 1 || var.dtypes[d] > 8) {
        return Error("type variable ", var.name, ": there is no dtype ",
                     var.dtypes[d]);
      }
      allowed.push_back(static_cast<DType>(var.dtypes[d]));
    }
    schema_.TypeVar(var.name, std::move(allowed), TextOrEmpty(var.default_to));
  }
  return absl::OkStatus();
}

absl::Status Declaration::AddSlots(const HalftoneSlot* slots, int count,
                                   bool in) {
  // kOptional, kList and kKeepF32 of halftone_op.h.
  const std::pair<uint32_t, uint32_t> known[] = {
      {1, kOptional}, {2, kList}, {4, kKeepF32}};
  for (int i = 0; i < count; ++i) {
    const HalftoneSlot& slot = slots[i];
    if (!IsIdentifier(slot.name)) {
      return Error(in ? "input " : "output ", i, ": expected a name, found ",
                   Shown(slot.name));
    }
    if (slot.flags > 7) {
      return Error("slot ", slot.name, ": flags ", slot.flags,
                   " are none of kOptional, kList, kKeepF32");
    }
    uint32_t flags = kRequired;
    for (const auto& [theirs, ours] : known) {
      if (slot.flags & theirs) flags |= ours;
    }
    if (in) {
      schema_.In(slot.name, TextOrEmpty(slot.type), TextOrEmpty(slot.doc),
                 flags);
    } else {
      schema_.Out(slot.name, TextOrEmpty(slot.type), TextOrEmpty(slot.doc),
                  flags);
    }
  }
  return absl::OkStatus();
}

absl::Status Declaration::AddAttrs() {
  for (int i = 0; i < op_.attr_count; ++i) {
    const HalftoneAttr& attr = op_.attrs[i];
    if (!IsIdentifier(attr.name)) {
      return Error("attribute ", i, ": expected a name, found ",
                   Shown(attr.name));
    }
    if (attr.kind < 0 || attr.kind >= kMostAttrKinds || attr.size < 0 ||
        attr.size > kMost || (attr.kind == 3 && attr.s == nullptr) ||
        (attr.kind == 4 && attr.size > 0 && attr.ints == nullptr) ||
        (attr.kind == 5 && attr.size > 0 && attr.floats == nullptr)) {
      return Error("attribute ", attr.name,
                   ": its kind or its value is none that there is");
    }
    schema_.Attr(attr.name, ValueOf(attr), TextOrEmpty(attr.doc));
  }
  return absl::OkStatus();
}

absl::Status Declaration::AddClass() {
  constexpr AmpClass kClasses[] = {AmpClass::kWhite, AmpClass::kBlack,
                                   AmpClass::kGray, AmpClass::kClear};
  if (op_.amp < 0 || op_.amp > 3) {
    return Error(
        "no class for mixed precision; declare it: .Amp(kWhite), kBlack, "
        "kGray or kClear");
  }
  if (op_.flags & ~kKnownOpFlags) {
    return Error("flags ", op_.flags, " are none of kAnyLayout, kNoMerge");
  }
  schema_.Amp(kClasses[op_.amp]).Version(op_.version);
  if (op_.flags & kAnyLayout) schema_.Layout(LayoutRule::kAny);
  if (op_.flags & kNoMerge) schema_.NoMerge();
  return absl::OkStatus();
}

absl::Status Declaration::CheckKernels() const {
  for (int k = 0; k < op_.kernel_count; ++k) {
    const HalftoneKernel& kernel = op_.kernels[k];
    const absl::string_view device(TextOrEmpty(kernel.device));
    if (device != "cpu" && device != "cuda") {
      return Error("kernel ", k, ": expected the device cpu or cuda, found ",
                   Shown(kernel.device));
    }
    if (kernel.run == nullptr) {
      return Error("kernel ", k, " (", device,
                   "): expected a function, found null");
    }
    if (kernel.dtype_count != op_.type_var_count ||
        (kernel.dtype_count > 0 && kernel.dtypes == nullptr)) {
      return Error("kernel ", k, " (", device,
                   "): expected a dtype for each of ", op_.type_var_count,
                   " type variables, found ", kernel.dtype_count);
    }
    for (int d = 0; d < kernel.dtype_count; ++d) {
      const TypeVar& var = schema_.type_vars()[d];
      const auto dtype = static_cast<DType>(kernel.dtypes[d]);
      if (std::find(var.allowed.begin(), var.allowed.end(), dtype) ==
          var.allowed.end()) {
        return Error("kernel ", k, " (", device, "): type variable ", var.name,
                     " does not allow dtype ", kernel.dtypes[d]);
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<OpSchema> Declaration::Run() {
  if (!IsIdentifier(op_.name)) {
    return Error("expected a name of letters, digits and _");
  }
  HT_RETURN_IF_ERROR(CheckCounts());
  if (TextOrEmpty(op_.doc)[0] == '\0')
    return Error("it says nothing of what it does");
  if (op_.infer == nullptr) {
    return Error("no shape rule; declare one: .Infer(SameDims)");
  }
  schema_.Doc(op_.doc);
  HT_RETURN_IF_ERROR(AddTypeVars());
  HT_RETURN_IF_ERROR(AddSlots(op_.inputs, op_.input_count, /*in=*/true));
  HT_RETURN_IF_ERROR(AddSlots(op_.outputs, op_.output_count, /*in=*/false));
  HT_RETURN_IF_ERROR(AddAttrs());
  HT_RETURN_IF_ERROR(AddClass());
  HT_RETURN_IF_ERROR(CheckKernels());
  schema_.Infer(InferenceOf(op_));
  if (op_.gradient_count == 0) {
    schema_.NoGrad();
  } else {
    schema_.Grad(GradientOf(op_));
  }
  return std::move(schema_);
}

}  // namespace

absl::StatusOr<std::vector<OpSchema>> SchemasOf(
    const HalftoneOpLibrary& library) {
  if (!IsIdentifier(library.name) || TextOrEmpty(library.version)[0] == '\0') {
    return ModelError("expected a library with a name and a version, found ",
                      Shown(library.name), " ", Shown(library.version));
  }
  if (library.op_count < 1 || library.op_count > kMost ||
      library.ops == nullptr) {
    return ModelError("expected 1 to ", kMost, " ops, found ",
                      library.op_count);
  }
  std::vector<OpSchema> schemas;
  for (int i = 0; i < library.op_count; ++i) {
    HT_ASSIGN_OR_RETURN(OpSchema schema, Declaration(library.ops[i]).Run());
    schemas.push_back(std::move(schema));
  }
  for (int i = 0; i < library.op_count; ++i) {
    HT_RETURN_IF_ERROR(CheckGradient(library.ops[i], schemas[i], schemas));
  }
  return schemas;
}

}  // namespace kernels
}  // namespace halftone
