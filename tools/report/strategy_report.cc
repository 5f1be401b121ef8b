#include "tools/report/strategy_report.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/check.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "graph/base/table.h"
#include "graph/base/text.h"
#include "graph/base/wrap.h"
#include "nlohmann/json.hpp"
#include "passes/options/options.h"
#include "tools/common/json_text.h"

namespace halftone {
namespace tools {
namespace {

using Json = nlohmann::ordered_json;
using Kind = StrategyField::Kind;

constexpr char kLevel[] = "amp.level", kDtype[] = "amp.dtype",
               kScaler[] = "amp.scaler";

proto::Strategy Resolved(const std::vector<passes::Override>& overrides) {
  const auto options = passes::ResolveOptions({}, overrides);
  HT_CHECK(options.ok(), "a strategy of defaults is sound");
  return options->strategy;
}

const StrategyField& Field(const char* path) {
  const StrategyField* const field = FindStrategyField(path);
  HT_CHECK(field != nullptr, path);
  return *field;
}

Bundles MakeLevels() {
  Bundles bundles;
  for (const std::string& level : Field(kLevel).facts->word()) {
    for (const std::string& dtype : Field(kDtype).facts->word()) {
      bundles.emplace_back(
          absl::StrCat(level, " ", dtype),
          Resolved({{kLevel, level, ""}, {kDtype, dtype, ""}}));
    }
  }
  return bundles;
}

Bundles MakeScalers() {
  Bundles bundles = {{"none", Resolved({{kLevel, "O1", ""}})}};
  for (const std::string& scaler : Field(kScaler).facts->word()) {
    bundles.emplace_back(scaler,
                         Resolved({{kLevel, "O1", ""}, {kScaler, scaler, ""}}));
  }
  return bundles;
}

std::string DefaultOf(const StrategyField& field) {
  if (Differs(LevelBundles(), field.path)) return "by level";
  const std::string value = ValueAt(LevelBundles().front().second, field.path);
  if (!value.empty()) return value;
  if (field.facts->has_unset()) {
    return absl::StrCat("unset: ", field.facts->unset());
  }
  return field.descriptor->is_repeated() ? "empty" : "none: to be set";
}

std::string TakesOf(const StrategyField& field) {
  const bool group = field.descriptor->is_repeated() &&
                     field.descriptor->message_type() != nullptr;
  const std::string takes = group ? "{ ... }" : TakesText(*field.descriptor);
  return field.descriptor->is_repeated() ? absl::StrCat("list: ", takes)
                                         : takes;
}

// "--level", "--loss-scale dynamic".
std::string FlagOf(const StrategyField& field) {
  const proto::Flag& flag = field.facts->flag();
  return absl::StrCat(flag.name(), flag.word().empty() ? "" : " ", flag.word());
}

// "O0 fp16 1, O0 bf16 1, ..."
std::string Each(const Bundles& bundles, const std::string& path) {
  std::vector<std::string> values;
  for (const auto& [name, strategy] : bundles) {
    values.push_back(absl::StrCat(name, " ", ValueAt(strategy, path)));
  }
  return absl::StrJoin(values, ", ");
}

// Where the value in force came from; "": there is none, as of a schedule or
// optimizer that was not chosen.
std::string FromOf(const StrategyField& field, const StrategyInForce& all) {
  const auto origin = all.origins.find(field.path);
  return origin == all.origins.end() ? "" : origin->second;
}

std::string InForce(const StrategyField& field, const StrategyInForce& all) {
  return FromOf(field, all).empty() ? "" : ValueAt(all.strategy, field.path);
}

std::string OrDash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string TableOf(const std::vector<const StrategyField*>& fields,
                    const StrategyInForce* in_force) {
  if (in_force == nullptr) {
    Table table({"field", "default", "takes", "flag"});
    for (const StrategyField* field : fields) {
      table.Add(
          {field->path, DefaultOf(*field), TakesOf(*field), FlagOf(*field)});
    }
    return table.Text();
  }
  Table table({"field", "value", "from", "default", "flag"});
  for (const StrategyField* field : fields) {
    if (field->kind == Kind::kMember) continue;  // the list shows them
    table.Add({field->path, OrDash(InForce(*field, *in_force)),
               OrDash(FromOf(*field, *in_force)), DefaultOf(*field),
               FlagOf(*field)});
  }
  return table.Text();
}

std::string FieldText(const StrategyField& field,
                      const StrategyInForce* in_force) {
  constexpr int kIndent = 11;
  const int columns = ColumnsOf(stdout);
  std::string text;
  const auto add = [&](const std::string& label, const std::string& line) {
    text += Hanging(label, line, kIndent, columns);
  };
  add("field", field.path);
  if (in_force != nullptr && field.kind == Kind::kField) {
    const std::string from = FromOf(field, *in_force);
    add("value", from.empty() ? "not set"
                              : absl::StrCat(InForce(field, *in_force),
                                             ", from ", from));
  }
  add("means", field.facts->doc());
  add("takes", TakesOf(field));
  add("default", DefaultOf(field));
  if (Differs(LevelBundles(), field.path)) {
    add("by level", Each(LevelBundles(), field.path));
  }
  if (Differs(ScalerBundles(), field.path)) {
    add("by scaler", Each(ScalerBundles(), field.path) + " (at O1)");
  }
  const std::string flag = FlagOf(field);
  if (field.kind == Kind::kField) {
    add("flag",
        absl::StrCat(
            flag, flag.empty() ? "" : ", ", "--set ", field.path, "=VALUE",
            field.descriptor->is_repeated() ? ", which adds a member" : ""));
  }
  add("program", field.leaves_graph_alone
                     ? "is the same with any: `run X.htc --set` takes it"
                     : "depends on it: compile again");
  add("ranks", !field.leaves_graph_alone ? "have it with the program"
               : field.agrees_on_all_ranks
                   ? "must all have the same, which is checked before step 1"
                   : "may differ");
  return text;
}

Json EachJson(const Bundles& bundles, const std::string& path) {
  Json json = Json::object();
  for (const auto& [name, strategy] : bundles) {
    json[name] = ValueAt(strategy, path);
  }
  return json;
}

Json FieldJson(const StrategyField& field, const StrategyInForce* in_force) {
  const std::string value = ValueAt(LevelBundles().front().second, field.path);
  const bool by_level = Differs(LevelBundles(), field.path);
  Json json = {{"path", field.path},
               {"doc", field.facts->doc()},
               {"list", field.descriptor->is_repeated()},
               {"takes", TakesOf(field)},
               {"default", by_level || value.empty() ? Json() : Json(value)},
               {"flag", FlagOf(field).empty() ? Json() : Json(FlagOf(field))},
               {"leaves_graph_alone", field.leaves_graph_alone},
               {"agrees_on_all_ranks", field.agrees_on_all_ranks}};
  if (in_force != nullptr && field.kind == Kind::kField) {
    const std::string is = InForce(field, *in_force);
    const std::string from = FromOf(field, *in_force);
    json["value"] = is.empty() ? Json() : Json(is);
    json["from"] = from.empty() ? Json() : Json(from);
  }
  if (field.facts->has_unset()) json["unset"] = field.facts->unset();
  if (by_level) json["by_level"] = EachJson(LevelBundles(), field.path);
  if (Differs(ScalerBundles(), field.path)) {
    json["by_scaler"] = EachJson(ScalerBundles(), field.path);
  }
  return json;
}

absl::Status Unknown(const std::string& path) {
  std::vector<std::string> paths;
  for (const StrategyField& field : StrategyFields()) {
    paths.push_back(field.path);
  }
  return UsageError("explain strategy: a strategy has no field \"", path, "\"",
                    NearestHint(path, paths),
                    " (all: halftone explain strategy)");
}

}  // namespace

const Bundles& LevelBundles() {
  static const Bundles& bundles = *new Bundles(MakeLevels());
  return bundles;
}

const Bundles& ScalerBundles() {
  static const Bundles& bundles = *new Bundles(MakeScalers());
  return bundles;
}

bool Differs(const Bundles& bundles, const std::string& path) {
  if (path == kLevel || path == kDtype || path == kScaler) return false;
  const std::string first = ValueAt(bundles.front().second, path);
  for (const auto& [name, strategy] : bundles) {
    if (ValueAt(strategy, path) != first) return true;
  }
  return false;
}

StrategyInForce InForceOf(const CompiledModel& model) {
  StrategyInForce in_force = {model.strategy, {}};
  for (const proto::FieldOrigin& field : model.origins) {
    in_force.origins[field.path()] = field.origin();
  }
  return in_force;
}

absl::StatusOr<std::string> ExplainStrategy(const std::string& path, bool json,
                                            const StrategyInForce* in_force) {
  const StrategyField* const one = FindStrategyField(path);
  if (one == nullptr && !path.empty()) return Unknown(path);
  const bool part = one == nullptr || one->kind == Kind::kPart;
  std::vector<const StrategyField*> fields;
  for (const StrategyField& field : StrategyFields()) {
    if (field.kind != Kind::kPart &&
        (one == nullptr || absl::StartsWith(field.path, path + "."))) {
      fields.push_back(&field);
    }
  }
  if (!part) {
    if (!json) {
      return absl::StrCat(FieldText(*one, in_force), fields.empty() ? "" : "\n",
                          fields.empty() ? "" : TableOf(fields, in_force));
    }
    Json object = {{"schema", 1}};
    object.update(FieldJson(*one, in_force));
    return JsonText(object);
  }
  if (json) {
    Json object = {{"schema", 1}, {"fields", Json::array()}};
    for (const StrategyField* field : fields) {
      object["fields"].push_back(FieldJson(*field, in_force));
    }
    return JsonText(object);
  }
  return absl::StrCat(
      one == nullptr ? "" : absl::StrCat(path, ": ", one->facts->doc(), "\n\n"),
      TableOf(fields, in_force));
}

}  // namespace tools
}  // namespace halftone
