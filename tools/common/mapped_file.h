// A file as memory.
#ifndef HALFTONE_TOOLS_COMMON_MAPPED_FILE_H_
#define HALFTONE_TOOLS_COMMON_MAPPED_FILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace halftone {
namespace tools {

// Read only; pages come as they are touched and go when memory is short. What
// is cut off after opening cannot be read any more (SIGBUS), as with any map:
// models are replaced, not changed.
class MappedFile {
 public:
  // Errors (kModel): not there, no regular file, empty.
  static absl::StatusOr<std::unique_ptr<MappedFile>> Open(
      const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  absl::string_view bytes() const { return bytes_; }

 private:
  explicit MappedFile(absl::string_view bytes) : bytes_(bytes) {}
  absl::string_view bytes_;
};

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_MAPPED_FILE_H_
