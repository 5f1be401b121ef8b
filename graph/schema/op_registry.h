// All op schemas of this binary, by name. Filled once by explicit functions
// (RegisterAllOps), never by static initialisers.
#ifndef HALFTONE_GRAPH_SCHEMA_OP_REGISTRY_H_
#define HALFTONE_GRAPH_SCHEMA_OP_REGISTRY_H_

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "graph/schema/op_schema.h"

namespace halftone {

class Program;

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

// Ops that a shared library brings (--op-library).
struct OpLibrary {
  std::string name, version;
  std::string file;  // as it was named
  std::string hash;  // of the file's bytes, 16 hex digits
};

// Adds all of the library's ops to Ops(), or none: errors (kModel) name an op
// that is there already, or what its schema lacks. Not while another thread
// reads Ops().
absl::Status AddOpLibrary(OpLibrary library, std::vector<OpSchema> ops);

// In the order in which they came; the pointers stay.
std::vector<const OpLibrary*> OpLibraries();
// By name; null if there is none.
const OpLibrary* FindOpLibrary(absl::string_view name);
// Where the op is from; null for the binary's own.
const OpLibrary* LibraryOf(const OpSchema& op);
// Those of all ops of a program, its fusions' bodies included, by name.
std::vector<const OpLibrary*> LibrariesOf(const Program& program);
// Adds the schemas of a block's ops, and of the bodies in it.
void AddSchemasOf(const Block& block, std::set<const OpSchema*>* schemas);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_SCHEMA_OP_REGISTRY_H_
