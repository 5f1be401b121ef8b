// A folder of files that belong together, and a manifest that knows them: a
// line of JSON with the XXH64 of each file, a second line with that of the
// first.
#ifndef HALFTONE_GRAPH_BASE_DISK_SEALED_FOLDER_H_
#define HALFTONE_GRAPH_BASE_DISK_SEALED_FOLDER_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/base/disk/directory.h"
#include "graph/base/error.h"
#include "nlohmann/json.hpp"

namespace halftone {

// By name, in the order in which they are written.
using FolderFiles = std::vector<std::pair<std::string, std::string>>;

// `manifest`, of that name and with "files" added to `facts`, comes last:
// without it there is no folder. Errors are kModel.
absl::Status SealFolder(const Directory& directory, const std::string& manifest,
                        nlohmann::ordered_json facts, const FolderFiles& files);

// Reads such a folder. Every error is kCheckpoint and names the file: missing,
// damaged by its checksum, not what the manifest has.
class SealedFolder {
 public:
  static absl::StatusOr<SealedFolder> Open(const std::string& path,
                                           const std::string& manifest);

  // What SealFolder was given; `manifest_path` names it in errors.
  const nlohmann::json& facts() const { return facts_; }
  std::string manifest_path() const { return directory_.PathOf(manifest_); }
  bool Has(const std::string& name) const { return sums_.count(name) > 0; }
  absl::StatusOr<std::string> Read(const std::string& name) const;
  template <typename... Parts>
  absl::Status Damaged(const std::string& name, const Parts&... parts) const {
    return CheckpointError(directory_.PathOf(name), ": ", parts...);
  }

 private:
  SealedFolder(Directory directory, std::string manifest)
      : directory_(std::move(directory)), manifest_(std::move(manifest)) {}
  absl::Status ReadManifest();

  Directory directory_;
  std::string manifest_;
  nlohmann::json facts_;
  std::map<std::string, std::string> sums_;  // by file
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_DISK_SEALED_FOLDER_H_
