// A file as memory.
#ifndef HALFTONE_RUNTIME_DATA_MAPPED_FILE_H_
#define HALFTONE_RUNTIME_DATA_MAPPED_FILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace halftone {
namespace runtime {

// Read only; pages come as they are touched and go when memory is short. What
// is cut off after opening cannot be read any more (SIGBUS), as with any map:
// files of data are replaced, not changed.
class MappedFile {
 public:
  // Errors (kModel): not there, no regular file, empty.
  static absl::StatusOr<std::unique_ptr<MappedFile>> Open(
      const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  absl::string_view bytes() const { return bytes_; }

 private:
  MappedFile(std::string path, absl::string_view bytes);
  std::string path_;
  absl::string_view bytes_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_MAPPED_FILE_H_
