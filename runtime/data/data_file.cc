#include "runtime/data/data_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/retry.h"

namespace halftone {
namespace runtime {

DataFile::~DataFile() { close(fd_); }

absl::StatusOr<std::unique_ptr<DataFile>> DataFile::Open(
    const std::string& path) {
  // A FIFO would wait for somebody to write.
  const int fd = Retried(
      [&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  if (fd < 0) {
    return ModelError(path, ": cannot be read: ", std::strerror(errno));
  }
  std::unique_ptr<DataFile> file;
  struct stat facts;
  std::string problem;
  if (fstat(fd, &facts) != 0) {
    problem = std::strerror(errno);
  } else if (!S_ISREG(facts.st_mode)) {
    problem = absl::StrCat(
        "expected a file, found ",
        S_ISDIR(facts.st_mode) ? "a directory" : "a device or a pipe");
  } else if (facts.st_size == 0) {
    problem = "expected content, the file is empty";
  }
  file.reset(new DataFile(path, fd, problem.empty() ? facts.st_size : 0));
  if (!problem.empty()) return ModelError(path, ": ", problem);
  return file;
}

absl::Status DataFile::ReadAt(int64_t offset, absl::Span<char> out) const {
  while (!out.empty()) {
    const ssize_t n =
        Retried([&] { return pread(fd_, out.data(), out.size(), offset); });
    if (n < 0) {
      return ModelError(path_, ": cannot be read: ", std::strerror(errno));
    }
    if (n == 0) {
      return ModelError(path_, ": expected ", out.size(),
                        " bytes more at byte ", offset,
                        ", found its end: it had ", size_,
                        " bytes when it was opened; leave files as they are ",
                        "while a run reads them");
    }
    out.remove_prefix(n);
    offset += n;
  }
  return absl::OkStatus();
}

}  // namespace runtime
}  // namespace halftone
