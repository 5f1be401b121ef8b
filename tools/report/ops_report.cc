#include "tools/report/ops_report.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/table.h"
#include "graph/base/text.h"
#include "graph/base/wrap.h"
#include "graph/schema/op_library.h"
#include "graph/schema/op_registry.h"
#include "graph/text/text.h"
#include "nlohmann/json.hpp"
#include "passes/options/named_op_lists.h"
#include "passes/precision/op_classes.h"
#include "tools/common/json_text.h"

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

std::string KindText(const Slot& slot) {
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

using Json = nlohmann::ordered_json;

Json SlotsJson(absl::Span<const Slot> slots) {
  Json json = Json::array();
  for (const Slot& slot : slots) {
    Json object = {{"name", slot.name},
                   {"type", slot.type},
                   {"list", slot.list()},
                   {"optional", slot.optional() || !slot.implicit.empty()},
                   {"keep_f32", slot.keep_f32()}};
    if (!slot.implicit.empty()) object["filled_from"] = slot.implicit;
    object["doc"] = slot.doc;
    json.push_back(object);
  }
  return json;
}

struct AttrToJson {
  template <typename T>
  Json operator()(const T& value) const {
    return value;
  }
  Json operator()(DType value) const { return std::string(Name(value)); }
};

Json AttrsJson(const OpSchema& op) {
  Json json = Json::array();
  for (const AttrSpec& attr : op.attrs()) {
    json.push_back({{"name", attr.name},
                    {"kind", std::string(Name(KindOf(attr.default_value)))},
                    {"required", attr.required},
                    {"default", attr.required ? Json()
                                              : std::visit(AttrToJson(),
                                                           attr.default_value)},
                    {"doc", attr.doc}});
  }
  return json;
}

// Each of the lists that have a name, and what it says.
using NamedClasses = std::vector<std::pair<std::string, passes::ListedClasses>>;
NamedClasses AllLists() {
  NamedClasses all;
  for (const std::string& name : passes::OpListNames()) {
    all.emplace_back(name, passes::ListedClasses(*passes::FindOpLists(name)));
  }
  return all;
}

Json ListsJson(const OpSchema& op, const NamedClasses& all) {
  Json json = Json::object();
  for (const auto& [name, classes] : all) {
    const std::optional<AmpClass> listed = classes.Of(op);
    json[name] = listed ? Json(std::string(Name(*listed))) : Json();
  }
  return json;
}

Json OpJson(const OpSchema& op, const passes::KernelSet& kernels,
            const NamedClasses& lists) {
  Json aliases = Json::array();
  for (const auto& [alias, name] : Ops().Aliases()) {
    if (name == op.name()) aliases.push_back(alias);
  }
  return {{"name", op.name()},
          {"aliases", aliases},
          {"class", std::string(Name(op.amp()))},
          {"lists", ListsJson(op, lists)},
          {"gradient", op.has_grad()},
          {"library",
           LibraryOf(op) == nullptr ? Json() : Json(LibraryOf(op)->name)},
          {"inputs", SlotsJson(op.inputs())},
          {"outputs", SlotsJson(op.outputs())},
          {"attributes", AttrsJson(op)},
          {"kernels", kernels.KeysOf(op.name())},
          {"doc", op.doc()}};
}

// "from mish 1.0, libmish.so, 0123456789abcdef"; empty for our own.
std::string FromLibrary(const OpSchema& op) {
  const OpLibrary* const library = LibraryOf(op);
  if (library == nullptr) return "";
  return absl::StrCat("from the op library ", library->name, " ",
                      library->version, ", ", library->file, ", ",
                      library->hash, "\n");
}

absl::StatusOr<const OpSchema*> FindNamed(const std::string& name) {
  const OpSchema* op = Ops().Find(name);
  if (op != nullptr) return op;
  return UsageError("no op is called \"", name, "\"",
                    NearestHint(name, Ops().Names()), " (all: halftone ops)");
}

// Sorted by name.
std::vector<const OpSchema*> OpsOf(WhichOps which) {
  std::vector<const OpSchema*> ops = Ops().All();
  if (which == WhichOps::kOfModels) {
    ops.erase(std::remove_if(ops.begin(), ops.end(),
                             [](const OpSchema* op) { return op->internal(); }),
              ops.end());
  }
  return ops;
}

}  // namespace

std::string OpsText(const passes::KernelSet& kernels, WhichOps which) {
  Table table({"op", "class",
               absl::StrCat("kernels (", kernels.target().name, ")"),
               "gradient", "what it does"});
  for (const OpSchema* op : OpsOf(which)) {
    table.Add({op->name(), std::string(Name(op->amp())), Dtypes(*op, kernels),
               op->has_grad() ? "yes" : "-", FirstSentence(op->doc())});
  }
  std::string text = table.Text();
  const std::string aliases =
      absl::StrJoin(Ops().Aliases(), ", ", absl::PairFormatter(" = "));
  text += Hanging("aliases: ", aliases, 9, ColumnsOf(stdout));
  for (const OpLibrary* library : OpLibraries()) {
    std::vector<std::string> names;
    for (const OpSchema* op : Ops().All()) {
      if (LibraryOf(*op) == library) names.push_back(op->name());
    }
    const std::string label = absl::StrCat(library->name, " ", library->version,
                                           ", ", library->file, ": ");
    text += Hanging(label, absl::StrJoin(names, ", "), 2, ColumnsOf(stdout));
  }
  return text;
}

std::string OpListsText() {
  const NamedClasses lists = AllLists();
  std::vector<std::string> head = {"op", "ours"};
  for (const auto& [name, classes] : lists) head.push_back(name);
  Table table(head);
  for (const OpSchema* op : Ops().All()) {
    std::vector<std::string> row = {op->name(), std::string(Name(op->amp()))};
    for (const auto& [name, classes] : lists) {
      const std::optional<AmpClass> listed = classes.Of(*op);
      row.push_back(listed ? std::string(Name(*listed)) : "-");
    }
    table.Add(row);
  }
  return table.Text() +
         Hanging("-: ",
                 "in none of these lists: black at O1 and gray at O2 and O3 "
                 "for paddle, gray at every level for the others",
                 3, ColumnsOf(stdout));
}

absl::StatusOr<std::string> OpsJson(const std::string& name,
                                    const passes::KernelSet& kernels,
                                    WhichOps which) {
  std::vector<const OpSchema*> ops = OpsOf(which);
  if (!name.empty()) {
    HT_ASSIGN_OR_RETURN(const OpSchema* op, FindNamed(name));
    ops = {op};
  }
  Json json = {
      {"schema", 1}, {"target", kernels.target().name}, {"ops", Json::array()}};
  const NamedClasses lists = AllLists();
  for (const OpSchema* op : ops) {
    json["ops"].push_back(OpJson(*op, kernels, lists));
  }
  return JsonText(json);
}

absl::StatusOr<std::string> OpText(const std::string& name,
                                   const passes::KernelSet& kernels) {
  HT_ASSIGN_OR_RETURN(const OpSchema* op, FindNamed(name));
  std::string text = absl::StrCat(
      op->name(), op->name() == name ? "" : absl::StrCat(" (alias ", name, ")"),
      ", ", Name(op->amp()), "\n", op->doc(), "\n", FromLibrary(*op), "\n");
  Table slots({"slot", "", "type", "shape and meaning"});
  for (const Slot& slot : op->inputs()) {
    slots.Add({slot.name, "in", KindText(slot), slot.doc});
  }
  for (const Slot& slot : op->outputs()) {
    slots.Add({slot.name, "out", KindText(slot), slot.doc});
  }
  text += slots.Text();
  if (!op->attrs().empty()) {
    Table attrs({"attribute", "default", "meaning"});
    for (const AttrSpec& attr : op->attrs()) {
      attrs.Add({attr.name, DefaultText(attr), attr.doc});
    }
    absl::StrAppend(&text, "\n", attrs.Text());
  }
  const std::string label =
      absl::StrCat("kernels (", kernels.target().name, "): ");
  return absl::StrCat(
      text, "\n",
      Hanging(label, absl::StrJoin(kernels.KeysOf(op->name()), " "),
              static_cast<int>(label.size()), ColumnsOf(stdout)));
}

}  // namespace tools
}  // namespace halftone
