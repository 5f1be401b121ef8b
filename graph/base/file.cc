#include "graph/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"

namespace halftone {
namespace {

absl::Status Failed(const std::string& path, absl::string_view what) {
  return ModelError(path, ": ", what, ": ", std::strerror(errno));
}

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

absl::Status WriteAll(int fd, const std::string& path,
                      absl::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return Failed(path, "cannot write");
    }
    content.remove_prefix(n);
  }
  if (::fsync(fd) != 0) return Failed(path, "cannot write");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     int64_t max_bytes) {
  // O_NONBLOCK: opening a pipe that nobody writes to must not hang.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return Failed(path, "cannot open");
  struct stat info;
  if (::fstat(file.get(), &info) != 0) return Failed(path, "cannot read");
  if (!S_ISREG(info.st_mode)) {
    return ModelError(path, ": expected a file, found ",
                      S_ISDIR(info.st_mode) ? "a directory" : "a device");
  }
  if (info.st_size > max_bytes) {
    return ModelError(path, ": ", info.st_size,
                      " bytes, more than the limit of ", max_bytes);
  }
  std::string content(info.st_size, '\0');
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = ::read(file.get(), &content[done], content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Failed(path, "cannot read");
    if (n == 0) break;
    done += n;
  }
  content.resize(done);
  return content;
}

absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view content) {
  const std::string temporary = absl::StrCat(path, ".tmp.", ::getpid());
  absl::Status status;
  {
    Descriptor file(::open(temporary.c_str(),
                           O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.get() < 0) return Failed(path, "cannot write");
    status = WriteAll(file.get(), path, content);
  }
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
    status = Failed(path, "cannot replace");
  }
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

absl::Status MakeDirectories(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string prefix = path.substr(0, end);
    if (::mkdir(prefix.c_str(), 0755) != 0 && errno != EEXIST) {
      return Failed(prefix, "cannot make the directory");
    }
    if (end == std::string::npos) break;
  }
  struct stat info;
  if (::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return ModelError(path, ": expected a directory, found a file");
  }
  return absl::OkStatus();
}

}  // namespace halftone
