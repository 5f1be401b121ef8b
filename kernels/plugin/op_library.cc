#include "kernels/plugin/op_library.h"

#include <utility>
#include <vector>

#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/text.h"
#include "graph/schema/op_library.h"
#include "kernels/plugin/declared_kernels.h"
#include "kernels/plugin/declared_ops.h"
#include "kernels/plugin/library_file.h"

namespace halftone {
namespace kernels {

// Behind Kernels(): kernels/register_all.cc.
KernelRegistry& GrowingKernels();

namespace {

std::vector<const HalftoneOpLibrary*>& Loaded() {
  static auto* const loaded = new std::vector<const HalftoneOpLibrary*>;
  return *loaded;
}

absl::Status Load(const std::string& path, const std::string& hash) {
  HT_ASSIGN_OR_RETURN(const HalftoneOpLibrary* const opened,
                      OpenLibraryFile(path));
  absl::StatusOr<std::vector<OpSchema>> schemas = SchemasOf(*opened);
  if (!schemas.ok()) return Annotate(schemas.status(), path);
  const OpLibrary* const other = FindOpLibrary(opened->name);
  if (other != nullptr) {
    return ModelError(path, ": there is a library ", opened->name, " already, ",
                      other->file, "; name only one of them");
  }
  HT_RETURN_IF_ERROR(AddOpLibrary({opened->name, opened->version, path, hash},
                                  *std::move(schemas)));
  AddKernelsOf(*opened, "cpu", &GrowingKernels());
  Loaded().push_back(opened);
  return absl::OkStatus();
}

}  // namespace

absl::Status LoadOpLibrary(const std::string& path) {
  const absl::StatusOr<std::string> bytes = ReadFile(path);
  if (!bytes.ok()) {
    return DeviceError("--op-library ", bytes.status().message());
  }
  const std::string hash = Hex64(StableHash(*bytes));
  for (const OpLibrary* library : OpLibraries()) {
    if (library->hash == hash) return absl::OkStatus();
  }
  HT_RETURN_IF_ERROR(TryInChild(path, [&] { return Load(path, hash); }));
  return Load(path, hash);
}

size_t AddGpuKernels(size_t known, KernelRegistry* registry) {
  for (; known < Loaded().size(); ++known) {
    AddKernelsOf(*Loaded()[known], "cuda", registry);
  }
  return known;
}

}  // namespace kernels
}  // namespace halftone
