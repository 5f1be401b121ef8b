#include "passes/options/resolver.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/strategy/fields.h"
#include "passes/options/strategy_fields.h"

namespace halftone {
namespace passes {

absl::Status OriginError(absl::string_view origin, absl::string_view path,
                         absl::string_view message) {
  const std::string text =
      absl::StrCat(origin, origin.empty() ? "" : ": ", path, ": ", message);
  return absl::StartsWith(origin, "--") ? UsageError(text) : ModelError(text);
}

Resolver::Resolver(const StrategyFile& file)
    : file_(file), strategy_(file.strategy) {
  VisitSetFields(strategy_, "", [this](const std::string& path) {
    const auto restored = file_.origins.find(path);
    if (restored != file_.origins.end()) {
      origins_[path] = restored->second;
      return;
    }
    const auto line = file_.lines.find(path);
    origins_[path] = line == file_.lines.end()
                         ? file_.file
                         : absl::StrCat(file_.file, ":", line->second);
  });
}

absl::Status Resolver::Choose(const Override& o) {
  // What a message's text sets is found by its paths.
  proto::Strategy alone;
  if (!SetStrategyField(&alone, o).ok()) return absl::OkStatus();
  for (const StrategyField& field : StrategyFields()) {
    const auto* const oneof = field.descriptor->containing_oneof();
    if (oneof == nullptr || !HasField(alone, field.path)) continue;
    std::string& chosen = chosen_[oneof->full_name()];
    if (!chosen.empty() && chosen != field.path) {
      return UsageError(o.origin, ": ", field.path, ": ", chosen,
                        " is set by another flag, too: choose one");
    }
    chosen = field.path;
  }
  return absl::OkStatus();
}

void Resolver::ApplyOverrides(absl::Span<const Override> overrides,
                              ErrorList* errors) {
  for (const Override& o : overrides) {
    if (!errors->Add(Choose(o))) continue;
    if (!errors->Add(SetStrategyField(&strategy_, o))) continue;
    added_[o.path].push_back(o.origin);
    origins_[o.path] = o.origin;
    // What a message override set beyond its own path.
    VisitSetFields(strategy_, "", [&](const std::string& path) {
      if (absl::StartsWith(path, absl::StrCat(o.path, "."))) {
        origins_[path] = o.origin;
      }
    });
  }
}

void Resolver::SetIfUnset(absl::string_view path, absl::string_view value,
                          absl::string_view origin) {
  if (IsSet(path)) return;
  const Override o{std::string(path), std::string(value), std::string(origin)};
  const absl::Status set = SetStrategyField(&strategy_, o);
  HT_CHECK(set.ok(), o.path.c_str());
  origins_[o.path] = o.origin;
}

void Resolver::FillDefault(absl::string_view path,
                           absl::Span<const std::string> bundles) {
  const std::optional<FieldDefault> value =
      DefaultOf(*FindStrategyField(path)->descriptor, bundles);
  if (value.has_value()) SetIfUnset(path, value->value, value->origin);
}

void Resolver::FillDefaults(absl::Span<const std::string> bundles) {
  passes::FillDefaults(
      &strategy_, "", bundles,
      [this](const std::string& path, const std::string& origin) {
        origins_[path] = origin;
      });
}

bool Resolver::IsSet(absl::string_view path) const {
  return origins_.count(std::string(path)) > 0;
}

std::string Resolver::Origin(absl::string_view path, int member) const {
  const std::string key(path);
  if (member >= 0) {
    const auto line = file_.lines.find(absl::StrCat(path, "[", member, "]"));
    if (line != file_.lines.end()) {
      return absl::StrCat(file_.file, ":", line->second);
    }
    // Members that overrides added stand behind the file's.
    const auto added = added_.find(key);
    int from_file = 0;
    while (file_.lines.count(absl::StrCat(path, "[", from_file, "]")) > 0) {
      ++from_file;
    }
    if (added != added_.end() &&
        member - from_file < static_cast<int>(added->second.size())) {
      return added->second[member - from_file];
    }
  }
  const auto origin = origins_.find(key);
  return origin == origins_.end() ? file_.file : origin->second;
}

std::string Resolver::OriginIn(absl::string_view list, int member,
                               const std::string& path) const {
  const auto line = file_.lines.find(path);
  return line == file_.lines.end()
             ? Origin(list, member)
             : absl::StrCat(file_.file, ":", line->second);
}

absl::Status Resolver::Error(absl::string_view path, absl::string_view message,
                             int member) const {
  return OriginError(Origin(path, member), path, message);
}

}  // namespace passes
}  // namespace halftone
