// What writing a file takes; for this folder alone (srcs, not hdrs).
#ifndef HALFTONE_GRAPH_BASE_FILE_WRITING_H_
#define HALFTONE_GRAPH_BASE_FILE_WRITING_H_

#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/retry.h"

namespace halftone {
namespace internal {

// "path: what: " and what errno says.
absl::Status Failed(const std::string& path, absl::string_view what);

// Closes its descriptor at the end of the scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

using halftone::Retried;

int Open(const std::string& path, int flags, mode_t mode = 0);

// All parts, and fsync; `path` is for errors.
absl::Status WriteAll(int fd, const std::string& path,
                      absl::Span<const absl::string_view> parts);

// A new file in the directory of `path`; no link that somebody laid out there
// is followed. -1 and errno if there can be none.
int MakeBeside(const std::string& path, std::string* name);

// `fd` is a file called `temporary` now, `path` when this is over. `old`: what
// has that name and gives its mode and owner; null: nothing.
absl::Status WriteAndRename(int fd, const std::string& temporary,
                            const std::string& path, const struct stat* old,
                            absl::Span<const absl::string_view> parts);

std::string DirectoryOf(const std::string& path);  // with the slash, or empty

}  // namespace internal
}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_FILE_WRITING_H_
