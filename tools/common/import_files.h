// Files of other systems as models: what `halftone import` reads and writes.
#ifndef HALFTONE_TOOLS_COMMON_IMPORT_FILES_H_
#define HALFTONE_TOOLS_COMMON_IMPORT_FILES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/import/imported_model.h"

namespace halftone {
namespace tools {

struct ImportFiles {
  std::string model;  // that is read
  std::string out;    // that is written, of `bytes`; empty: beside the model
  int64_t bytes = 0;
  // Paddle's: for initialisers and parameters; empty: none, and what lies
  // beside the model.
  std::string startup, params;
  std::string weights;     // the safetensors; empty: none was written
  std::string no_weights;  // why
  int64_t tensors = 0, weight_bytes = 0;
};

struct ImportWishes {
  std::string loss;
  std::optional<int64_t> class_axis;
  std::map<std::string, std::vector<int64_t>> dims;  // by feed
};

// Tells the kind of `files->model` by content, imports it and writes the model
// and its weights beside it, or nothing.
absl::StatusOr<ImportedModel> ImportFile(const ImportWishes& wishes,
                                         ImportFiles* files);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_IMPORT_FILES_H_
