#include "graph/schema/op_registry.h"

#include <algorithm>
#include <utility>

#include "graph/base/check.h"
#include "graph/schema/growing_ops.h"

namespace halftone {

void OpRegistry::Add(OpSchema schema) {
  schema.ResolveSlotTypes();
  const absl::Status status = schema.Check();
  HT_CHECK(status.ok(), status.ToString().c_str());
  const std::string name = schema.name();
  HT_CHECK(Find(name) == nullptr, ("op registered twice: " + name).c_str());
  auto& added = schemas_[name] = std::make_unique<OpSchema>(std::move(schema));
  found_[name] = added.get();
}

void OpRegistry::AddAlias(absl::string_view alias, absl::string_view name) {
  HT_CHECK(schemas_.contains(name),
           ("alias of an unknown op: " + std::string(name)).c_str());
  HT_CHECK(Find(alias) == nullptr,
           ("op registered twice: " + std::string(alias)).c_str());
  aliases_[alias] = std::string(name);
  found_[alias] = Find(name);
}

const OpSchema* OpRegistry::Find(absl::string_view name) const {
  const auto it = found_.find(name);
  return it == found_.end() ? nullptr : it->second;
}

std::vector<const OpSchema*> OpRegistry::All() const {
  std::vector<const OpSchema*> all;
  for (const auto& [name, schema] : schemas_) all.push_back(schema.get());
  std::sort(all.begin(), all.end(), [](const OpSchema* a, const OpSchema* b) {
    return a->name() < b->name();
  });
  return all;
}

std::vector<std::string> OpRegistry::Names() const {
  std::vector<std::string> names;
  for (const OpSchema* schema : All()) names.push_back(schema->name());
  return names;
}

std::vector<std::pair<std::string, std::string>> OpRegistry::Aliases() const {
  std::vector<std::pair<std::string, std::string>> aliases(aliases_.begin(),
                                                           aliases_.end());
  std::sort(aliases.begin(), aliases.end());
  return aliases;
}

OpRegistry& GrowingOps() {
  static OpRegistry* const registry = [] {
    auto* all = new OpRegistry;
    RegisterAllOps(*all);
    return all;
  }();
  return *registry;
}

const OpRegistry& Ops() { return GrowingOps(); }

}  // namespace halftone
