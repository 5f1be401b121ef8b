// docs/ops.md: what `halftone ops --json` says.
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/check.h"
#include "graph/schema/op_registry.h"
#include "nlohmann/json.hpp"
#include "tests/docs/docs.h"
#include "tools/common/model_flags.h"
#include "tools/report/ops_report.h"

namespace halftone {
namespace docs {
namespace {

using Json = nlohmann::json;

std::string Text(const Json& json, const char* key) {
  return json.at(key).get<std::string>();
}

std::string Names(const Json& names) {
  std::vector<std::string> spelled;
  for (const Json& name : names) spelled.push_back(Code(name));
  return absl::StrJoin(spelled, " ");
}

std::string SlotTable(const Json& op) {
  std::vector<std::vector<std::string>> rows;
  for (const char* side : {"inputs", "outputs"}) {
    for (const Json& slot : op.at(side)) {
      std::vector<std::string> kinds = {Text(slot, "type")};
      if (slot.at("list")) kinds.push_back("list");
      if (slot.at("optional")) kinds.push_back("optional");
      if (slot.at("keep_f32")) kinds.push_back("stays f32");
      if (slot.contains("filled_from")) kinds.push_back(slot["filled_from"]);
      rows.push_back({Text(slot, "name"), side[0] == 'i' ? "in" : "out",
                      absl::StrJoin(kinds, ", "), Text(slot, "doc")});
    }
  }
  return MarkdownTable({"slot", "", "type", "shape and meaning"}, rows);
}

std::string AttributeTable(const Json& op) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& attr : op.at("attributes")) {
    rows.push_back(
        {Text(attr, "name"), Text(attr, "kind"),
         attr.at("required") ? "required" : Code(attr.at("default").dump()),
         Text(attr, "doc")});
  }
  if (rows.empty()) return "";
  return "\n" +
         MarkdownTable({"attribute", "kind", "default", "meaning"}, rows);
}

// "f16 f32": the dtypes of the lead type variable that kernels take.
std::string KernelDtypes(const Json& op) {
  std::set<std::string> dtypes;
  for (const Json& key : op.at("kernels")) {
    const std::string text = key.get<std::string>();
    const size_t open = text.find('(');
    const size_t close = text.find_first_of(",)", open);
    dtypes.insert(text.substr(open + 1, close - open - 1));
  }
  dtypes.erase("");
  return dtypes.empty() ? op.at("kernels").empty() ? "none" : "yes"
                        : absl::StrJoin(dtypes, " ");
}

std::string Section(const Json& op) {
  std::string text =
      absl::StrCat("\n## ", Text(op, "name"), "\n\n", Text(op, "doc"), "\n\n");
  if (!op.at("aliases").empty()) {
    absl::StrAppend(&text, "Also called ", Names(op.at("aliases")), ".\n");
  }
  absl::StrAppend(&text, "Class ", Text(op, "class"), "; ",
                  op.at("gradient") ? "has a gradient" : "no gradient",
                  "; kernels on cpu: ", KernelDtypes(op), ".\n\n",
                  SlotTable(op), AttributeTable(op));
  return text;
}

}  // namespace

std::string OpsPage() {
  const auto kernels = tools::KernelSetFor("cpu");
  HT_CHECK(kernels.ok(), "the cpu is a target");
  const auto text = tools::OpsJson("", *kernels);
  HT_CHECK(text.ok(), "all ops can be listed");
  const Json json = Json::parse(*text);
  std::string for_models, for_passes, sections;
  for (const Json& op : json.at("ops")) {
    const std::string name = Text(op, "name");
    std::string& index = Ops().Find(name)->internal() ? for_passes : for_models;
    absl::StrAppend(&index, "[", name, "](#", name, ")\n");
    sections += Section(op);
  }
  return absl::StrCat(
      "# Ops\n\n", kDerived,
      "\nWhat `halftone ops` knows: `halftone ops NAME`, `--json`, and "
      "`--target sm_90` for\nanother target's kernels. A type is a variable "
      "(`T`: the same wherever the op\nhas it) or a dtype. \"Stays f32\": the "
      "slot is f32 at every level. Classes are\nexplained in "
      "[design.md](design.md#precision-is-a-policy-with-a-reason).\n\n"
      "For models:\n\n",
      for_models, "\nMade by passes alone:\n\n", for_passes, sections);
}

}  // namespace docs
}  // namespace halftone
