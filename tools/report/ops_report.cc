#include "tools/report/ops_report.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/schema/op_registry.h"
#include "graph/text/text.h"
#include "nlohmann/json.hpp"
#include "tools/report/table.h"

namespace halftone {
namespace tools {
namespace {

// "f32 f16 bf16": those of the lead type variable with a kernel.
std::string Dtypes(const OpSchema& op, const passes::KernelSet& kernels) {
  std::vector<std::string> names;
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64,
                      DType::kI32, DType::kI64, DType::kU8, DType::kBool}) {
    if (kernels.HasPrecision(op.name(), dtype)) {
      names.emplace_back(Name(dtype));
    }
  }
  if (!names.empty()) return absl::StrJoin(names, " ");
  return kernels.KeysOf(op.name()).empty() ? "-" : "yes";
}

std::string FirstSentence(const std::string& doc) {
  const size_t end = doc.find(". ");
  return end == std::string::npos ? doc : doc.substr(0, end + 1);
}

std::string Kind(const Slot& slot) {
  std::vector<std::string> kinds = {slot.type};
  if (slot.list()) kinds.push_back("list");
  if (slot.optional()) kinds.push_back("optional");
  if (slot.keep_f32()) kinds.push_back("stays f32");
  if (!slot.implicit.empty()) kinds.push_back(slot.implicit);
  return absl::StrJoin(kinds, ", ");
}

std::string DefaultText(const AttrSpec& attr) {
  if (attr.required) return "required";
  struct Printer {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(int64_t v) const { return absl::StrCat(v); }
    std::string operator()(double v) const { return ExactDouble(v); }
    std::string operator()(const std::string& v) const {
      return absl::StrCat("\"", v, "\"");
    }
    std::string operator()(DType v) const { return std::string(Name(v)); }
    std::string operator()(const std::vector<int64_t>& v) const {
      return absl::StrCat("[", absl::StrJoin(v, ", "), "]");
    }
    std::string operator()(const std::vector<double>& v) const {
      return absl::StrCat("[", absl::StrJoin(v, ", "), "]");
    }
    std::string operator()(const std::vector<std::string>& v) const {
      return absl::StrCat("[", absl::StrJoin(v, ", "), "]");
    }
  };
  return std::visit(Printer(), attr.default_value);
}

absl::StatusOr<const OpSchema*> FindNamed(const std::string& name) {
  const OpSchema* op = Ops().Find(name);
  if (op != nullptr) return op;
  return UsageError("no op is called \"", name, "\"",
                    NearestHint(name, Ops().Names()), " (all: halftone ops)");
}

}  // namespace

std::string OpsText(const passes::KernelSet& kernels) {
  Table table({"op", "class", absl::StrCat("kernels (", kernels.target(), ")"),
               "gradient", "what it does"});
  for (const OpSchema* op : Ops().All()) {
    table.Add({op->name(), std::string(Name(op->amp())), Dtypes(*op, kernels),
               op->has_grad() ? "yes" : "-", FirstSentence(op->doc())});
  }
  std::string text = table.Text();
  absl::StrAppend(&text, "aliases: ",
                  absl::StrJoin(Ops().Aliases(), ", ",
                                [](std::string* out, const auto& alias) {
                                  absl::StrAppend(out, alias.first, " = ",
                                                  alias.second);
                                }),
                  "\n");
  return text;
}

absl::StatusOr<std::string> OpsJson(const std::string& name,
                                    const passes::KernelSet& kernels) {
  std::vector<const OpSchema*> ops = Ops().All();
  if (!name.empty()) {
    HT_ASSIGN_OR_RETURN(const OpSchema* op, FindNamed(name));
    ops = {op};
  }
  nlohmann::ordered_json json = {{"schema", 1},
                                 {"target", kernels.target()},
                                 {"ops", nlohmann::ordered_json::array()}};
  for (const OpSchema* op : ops) {
    json["ops"].push_back({{"name", op->name()},
                           {"class", std::string(Name(op->amp()))},
                           {"gradient", op->has_grad()},
                           {"kernels", kernels.KeysOf(op->name())},
                           {"doc", op->doc()}});
  }
  return json.dump(1) + "\n";
}

absl::StatusOr<std::string> OpText(const std::string& name,
                                   const passes::KernelSet& kernels) {
  const OpSchema* op = Ops().Find(name);
  if (op == nullptr) {
    return UsageError("no op is called \"", name, "\"",
                      NearestHint(name, Ops().Names()), " (all: halftone ops)");
  }
  std::string text = absl::StrCat(
      op->name(), op->name() == name ? "" : absl::StrCat(" (alias ", name, ")"),
      ", ", Name(op->amp()), "\n", op->doc(), "\n\n");
  Table slots({"slot", "", "type", "shape and meaning"});
  for (const Slot& slot : op->inputs()) {
    slots.Add({slot.name, "in", Kind(slot), slot.doc});
  }
  for (const Slot& slot : op->outputs()) {
    slots.Add({slot.name, "out", Kind(slot), slot.doc});
  }
  text += slots.Text();
  if (!op->attrs().empty()) {
    Table attrs({"attribute", "default", "meaning"});
    for (const AttrSpec& attr : op->attrs()) {
      attrs.Add({attr.name, DefaultText(attr), attr.doc});
    }
    absl::StrAppend(&text, "\n", attrs.Text());
  }
  absl::StrAppend(&text, "\nkernels (", kernels.target(),
                  "): ", absl::StrJoin(kernels.KeysOf(op->name()), " "), "\n");
  return text;
}

}  // namespace tools
}  // namespace halftone
