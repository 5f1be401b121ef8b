// All op schemas of this binary, by name. Filled once by explicit functions
// (RegisterAllOps), never by static initialisers.
#ifndef HALFTONE_GRAPH_SCHEMA_OP_REGISTRY_H_
#define HALFTONE_GRAPH_SCHEMA_OP_REGISTRY_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "graph/schema/op_schema.h"

namespace halftone {

class OpRegistry {
 public:
  // CHECKs schema.Check() and that the name is new.
  void Add(OpSchema schema);
  // `alias` in model files and op lists means `name` (matmul_v2 -> matmul).
  void AddAlias(absl::string_view alias, absl::string_view name);

  // By name or alias; null if there is none.
  const OpSchema* Find(absl::string_view name) const;
  // Sorted by name; aliases left out.
  std::vector<const OpSchema*> All() const;
  std::vector<std::string> Names() const;
  // Sorted (alias, name).
  std::vector<std::pair<std::string, std::string>> Aliases() const;

 private:
  absl::flat_hash_map<std::string, std::unique_ptr<OpSchema>> schemas_;
  // By name and by alias.
  absl::flat_hash_map<std::string, const OpSchema*> found_;
  absl::flat_hash_map<std::string, std::string> aliases_;
};

// Adds every op of the binary. Defined in graph/ops/register_all.cc: a binary
// or test that links graph/schema also depends on //graph/ops, which is
// alwayslink (or, as the tests here, defines a registry of its own).
void RegisterAllOps(OpRegistry& registry);

// The process's registry, filled by RegisterAllOps on first use; it grows by
// AddOpLibrary alone.
const OpRegistry& Ops();

}  // namespace halftone

#endif  // HALFTONE_GRAPH_SCHEMA_OP_REGISTRY_H_
