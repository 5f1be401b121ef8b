#include "graph/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/file_writing.h"

namespace halftone {
namespace internal {

absl::Status Failed(const std::string& path, absl::string_view what) {
  // As SystemError of graph/base/system, which stands on this folder.
  const int error = errno;
  return MakeError(error == ENOMEM ? ExitCode::kOutOfMemory : ExitCode::kModel,
                   absl::StrCat(path, ": ", what, ": ", std::strerror(error)));
}

int Open(const std::string& path, int flags, mode_t mode) {
  return Retried([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); });
}

absl::Status WriteAll(int fd, const std::string& path,
                      absl::Span<const absl::string_view> parts) {
  for (absl::string_view rest : parts) {
    while (!rest.empty()) {
      const ssize_t n =
          Retried([&] { return ::write(fd, rest.data(), rest.size()); });
      if (n < 0) return Failed(path, "cannot write");
      rest.remove_prefix(n);
    }
  }
  // Pipes and devices have nothing to sync.
  if (Retried([&] { return ::fsync(fd); }) != 0 && errno != EINVAL &&
      errno != ENOTSUP && errno != EROFS) {
    return Failed(path, "cannot write");
  }
  return absl::OkStatus();
}

std::string DirectoryOf(const std::string& path) {
  return path.substr(0, path.rfind('/') + 1);
}

int MakeBeside(const std::string& path, std::string* name) {
  static std::atomic<int> files{0};
  const std::string directory = DirectoryOf(path);
  // Longer names than these 200 characters have no room for what is added.
  const std::string base = path.substr(directory.size(), 200);
  for (int tries = 0; tries < 100; ++tries) {
    *name = absl::StrCat(directory, base, ".tmp.", ::getpid(), ".", ++files);
    const int fd = Open(*name, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

absl::Status WriteAndRename(int fd, const std::string& temporary,
                            const std::string& path, const struct stat* old,
                            absl::Span<const absl::string_view> parts) {
  absl::Status status;
  {
    Descriptor file(fd);
    if (old != nullptr) {
      // Only root may give a file away; who may not keeps it as his own.
      if (::fchown(fd, old->st_uid, old->st_gid) != 0) errno = 0;
      ::fchmod(fd, old->st_mode & 0777);
    }
    status = WriteAll(fd, path, parts);
  }
  const auto rename = [&] { return ::rename(temporary.c_str(), path.c_str()); };
  if (status.ok() && Retried(rename) != 0) {
    status = Failed(path, "cannot replace");
  }
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

}  // namespace internal

using internal::Descriptor;
using internal::Failed;
using internal::Open;
using internal::Retried;

const char* KindOfFile(mode_t mode) {
  return S_ISDIR(mode)    ? "a directory"
         : S_ISFIFO(mode) ? "a pipe"
         : S_ISSOCK(mode) ? "a socket"
                          : "a device";
}

absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     int64_t max_bytes) {
  // O_NONBLOCK: opening a pipe that nobody writes to must not hang.
  Descriptor file(Open(path, O_RDONLY | O_NONBLOCK));
  if (file.get() < 0) return Failed(path, "cannot open");
  struct stat info;
  if (::fstat(file.get(), &info) != 0) return Failed(path, "cannot read");
  if (!S_ISREG(info.st_mode)) {
    return ModelError(path, ": expected a file, found ",
                      KindOfFile(info.st_mode));
  }
  if (info.st_size > max_bytes) {
    return ModelError(path, ": ", info.st_size,
                      " bytes, more than the limit of ", max_bytes);
  }
  std::string content(info.st_size, '\0');
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = Retried([&] {
      return ::read(file.get(), &content[done], content.size() - done);
    });
    if (n < 0) return Failed(path, "cannot read");
    if (n == 0) break;
    done += n;
  }
  content.resize(done);
  return content;
}

absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view content) {
  std::string temporary;
  const int fd = internal::MakeBeside(path, &temporary);
  if (fd < 0) return Failed(path, "cannot write");
  return internal::WriteAndRename(fd, temporary, path, /*old=*/nullptr,
                                  absl::MakeConstSpan(&content, 1));
}

absl::Status MakeDirectories(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string prefix = path.substr(0, end);
    if (Retried([&] { return ::mkdir(prefix.c_str(), 0755); }) != 0 &&
        errno != EEXIST) {
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
