// A file of which parts are read, by any thread.
#ifndef HALFTONE_RUNTIME_DATA_DATA_FILE_H_
#define HALFTONE_RUNTIME_DATA_DATA_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace halftone {
namespace runtime {

// Read, not mapped: of a file that is cut off under way a map is a crash, and
// its pages count as the process's memory.
class DataFile {
 public:
  // Errors (kModel): not there, no regular file, empty.
  static absl::StatusOr<std::unique_ptr<DataFile>> Open(
      const std::string& path);
  ~DataFile();
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }  // when it was opened
  // Its position is of no account to ReadAt.
  int descriptor() const { return fd_; }

  // Errors (kModel): the file has ended before.
  absl::Status ReadAt(int64_t offset, absl::Span<char> out) const;

 private:
  DataFile(std::string path, int fd, int64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {}
  const std::string path_;
  const int fd_;
  const int64_t size_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_DATA_FILE_H_
