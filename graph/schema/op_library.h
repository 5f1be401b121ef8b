// Ops that shared libraries bring (--op-library).
#ifndef HALFTONE_GRAPH_SCHEMA_OP_LIBRARY_H_
#define HALFTONE_GRAPH_SCHEMA_OP_LIBRARY_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "graph/schema/op_schema.h"

namespace halftone {

class Block;
class Program;

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

#endif  // HALFTONE_GRAPH_SCHEMA_OP_LIBRARY_H_
