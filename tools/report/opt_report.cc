#include "tools/report/opt_report.h"

#include <vector>

#include "graph/base/table.h"
#include "passes/pipelines.h"
#include "tools/common/json_text.h"

namespace halftone {
namespace tools {
namespace {

using Json = nlohmann::ordered_json;

// What can be named, each behind what it is part of.
struct NamedMember {
  int depth;  // 0: a phase
  std::string name, doc;
};

std::vector<NamedMember> AllNames() {
  std::vector<NamedMember> names;
  for (const passes::PassPhase& phase : passes::AllPhases()) {
    names.push_back({0, phase.name, phase.doc});
    absl::string_view inside;
    for (const passes::PassStep& step : passes::AllSteps()) {
      if (step.phase != phase.phase) continue;
      for (const passes::PassGroup& group : passes::AllGroups()) {
        if (group.name != step.group() || inside == group.name) continue;
        names.push_back({1, group.name, group.doc});
      }
      inside = step.group();
      names.push_back({inside.empty() ? 1 : 2, step.name, step.doc});
    }
  }
  return names;
}

}  // namespace

Json PassesJson(
    const google::protobuf::RepeatedPtrField<proto::PassRow>& passes) {
  Json rows = Json::array();
  for (const proto::PassRow& pass : passes) {
    Json row = {{"name", pass.name()},
                {"ms", pass.ms()},
                {"changed", pass.changed()},
                {"times", pass.times()}};
    if (pass.pass_size() > 0) row["passes"] = PassesJson(pass.pass());
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string PassListText() {
  Table table({"name", "what it is for"});
  for (const NamedMember& named : AllNames()) {
    table.Add({std::string(2 * named.depth, ' ') + named.name, named.doc});
  }
  return table.Text();
}

std::string PassListJson() {
  Json rows = Json::array();
  for (const NamedMember& named : AllNames()) {
    rows.push_back({{"name", named.name}, {"doc", named.doc}});
  }
  return JsonText({{"schema", 1}, {"passes", std::move(rows)}});
}

std::string OptJson(
    const google::protobuf::RepeatedPtrField<proto::PassRow>& passes,
    absl::string_view path, absl::string_view program) {
  Json json = {{"schema", 1}, {"passes", PassesJson(passes)}};
  if (path.empty()) {
    json["program"] = std::string(program);
  } else {
    json["path"] = std::string(path);
  }
  return JsonText(json);
}

}  // namespace tools
}  // namespace halftone
