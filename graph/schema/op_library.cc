#include "graph/schema/op_library.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "graph/base/error.h"
#include "graph/ir/program.h"
#include "graph/schema/growing_ops.h"

namespace halftone {

namespace {

struct Loaded {
  std::vector<std::unique_ptr<const OpLibrary>> libraries;
  std::map<std::string, const OpLibrary*> of_op;
};
Loaded& All() {
  static auto* const all = new Loaded;
  return *all;
}

}  // namespace

absl::Status AddOpLibrary(OpLibrary library, std::vector<OpSchema> ops) {
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string& name = ops[i].name();
    const OpSchema* const other = Ops().Find(name);
    if (other != nullptr) {
      const OpLibrary* const from = LibraryOf(*other);
      return ModelError(library.file, ": op ", name, ": there is one already, ",
                        from == nullptr ? "Halftone's own"
                                        : absl::StrCat("from ", from->file),
                        "; rename it (all: halftone ops)");
    }
    const auto same = [&name](const OpSchema& o) { return o.name() == name; };
    if (std::any_of(ops.begin(), ops.begin() + i, same)) {
      return ModelError(library.file, ": two ops are named ", name);
    }
    ops[i].ResolveSlotTypes();
    const absl::Status status = ops[i].Check();
    if (!status.ok()) return ModelError(library.file, ": ", status.message());
  }
  Loaded& all = All();
  all.libraries.push_back(
      std::make_unique<const OpLibrary>(std::move(library)));
  for (OpSchema& op : ops) {
    all.of_op[op.name()] = all.libraries.back().get();
    GrowingOps().Add(std::move(op));
  }
  return absl::OkStatus();
}

std::vector<const OpLibrary*> OpLibraries() {
  std::vector<const OpLibrary*> libraries;
  for (const auto& library : All().libraries) {
    libraries.push_back(library.get());
  }
  return libraries;
}

const OpLibrary* FindOpLibrary(absl::string_view name) {
  for (const auto& library : All().libraries) {
    if (library->name == name) return library.get();
  }
  return nullptr;
}

const OpLibrary* LibraryOf(const OpSchema& op) {
  const auto found = All().of_op.find(op.name());
  return found == All().of_op.end() ? nullptr : found->second;
}

void AddSchemasOf(const Block& block, std::set<const OpSchema*>* schemas) {
  for (const auto& [schema, count] : block.counts()) {
    if (count > 0) schemas->insert(schema);
    if (schema->name() != "fusion") continue;
    for (OpId id : block.OpsOf(schema)) {
      AddSchemasOf(*block.op(id).body, schemas);
    }
  }
}

std::vector<const OpLibrary*> LibrariesOf(const Program& program) {
  if (All().libraries.empty()) return {};
  std::set<const OpSchema*> schemas;
  for (const auto& entry : program.entries()) {
    AddSchemasOf(entry->block(), &schemas);
  }
  std::map<std::string, const OpLibrary*> libraries;
  for (const OpSchema* schema : schemas) {
    const OpLibrary* const library = LibraryOf(*schema);
    if (library != nullptr) libraries[library->name] = library;
  }
  std::vector<const OpLibrary*> sorted;
  for (const auto& [name, library] : libraries) sorted.push_back(library);
  return sorted;
}

}  // namespace halftone
