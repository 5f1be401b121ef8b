#include "graph/base/disk/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/retry.h"
#include "graph/base/system/system_error.h"

namespace halftone {
namespace {

absl::Status Failed(const std::string& path, absl::string_view what) {
  const int error = errno;
  return SystemError(ExitCode::kModel, error, absl::StrCat(path, ": ", what));
}

absl::Status IsALink(const std::string& path, absl::string_view expected) {
  return ModelError(path, ": expected ", expected,
                    ", found a link: what is in a run directory is the run's "
                    "own, and links in it are not followed; put ",
                    expected, " in its place");
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.Release();
  }
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

int Descriptor::Release() { return std::exchange(fd_, -1); }

absl::StatusOr<Directory> Directory::Open(const std::string& path) {
  const int fd = Retried(
      [&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (fd < 0 && errno == ENOTDIR) {
    return ModelError(path, ": expected a directory, found a file");
  }
  if (fd < 0) return Failed(path, "cannot open");
  return Directory(path, fd);
}

absl::StatusOr<Directory> Directory::Make(const std::string& path, bool* made) {
  struct stat info;
  const bool there = ::stat(path.c_str(), &info) == 0;
  HT_RETURN_IF_ERROR(MakeDirectories(path));
  if (made != nullptr) *made = !there;
  return Open(path);
}

absl::StatusOr<Directory> Directory::OpenParent(const std::string& path,
                                                std::string* name) {
  const size_t slash = path.rfind('/');
  *name = path.substr(slash == std::string::npos ? 0 : slash + 1);
  return Open(slash == std::string::npos ? "."
              : slash == 0               ? "/"
                                         : path.substr(0, slash));
}

std::string Directory::PathOf(absl::string_view name) const {
  return absl::StrCat(path_, "/", name);
}

std::vector<std::string> Directory::Names() const {
  std::vector<std::string> names;
  // A descriptor of its own, as the position in the list belongs to it.
  const int fd = Retried([&] {
    return ::openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  });
  DIR* dir = fd < 0 ? nullptr : ::fdopendir(fd);
  if (dir == nullptr) {
    if (fd >= 0) ::close(fd);
    return names;
  }
  while (const dirent* entry = ::readdir(dir)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

Directory::Kind Directory::KindOf(const std::string& name) const {
  struct stat info;
  if (::fstatat(fd_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return Kind::kNothing;
  }
  return S_ISREG(info.st_mode)   ? Kind::kFile
         : S_ISDIR(info.st_mode) ? Kind::kDirectory
         : S_ISLNK(info.st_mode) ? Kind::kLink
                                 : Kind::kOther;
}

absl::StatusOr<Directory> Directory::OpenChild(const std::string& name) const {
  const std::string path = PathOf(name);
  const int fd = Retried([&] {
    return ::openat(fd_.get(), name.c_str(),
                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  });
  if (fd >= 0) return Directory(path, fd);
  const int error = errno;
  if (KindOf(name) == Kind::kLink) return IsALink(path, "a directory");
  if (error == ENOTDIR) {
    return ModelError(path, ": expected a directory, found a file");
  }
  errno = error;
  return Failed(path, "cannot open");
}

absl::StatusOr<Directory> Directory::MakeChild(const std::string& name) const {
  const int made =
      Retried([&] { return ::mkdirat(fd_.get(), name.c_str(), 0755); });
  if (made != 0 && errno != EEXIST) {
    return Failed(PathOf(name), "cannot make the directory");
  }
  return OpenChild(name);
}

absl::StatusOr<Descriptor> Directory::OpenToRead(
    const std::string& name) const {
  // O_NONBLOCK: opening a pipe that nobody writes to must not hang.
  Descriptor file(Retried([&] {
    return ::openat(fd_.get(), name.c_str(),
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  }));
  const std::string path = PathOf(name);
  if (file.get() < 0 && errno == ELOOP) return IsALink(path, "a file");
  if (file.get() < 0) return Failed(path, "cannot open");
  struct stat info;
  if (::fstat(file.get(), &info) != 0) return Failed(path, "cannot read");
  if (!S_ISREG(info.st_mode)) {
    return ModelError(path, ": expected a file, found ",
                      KindOfFile(info.st_mode));
  }
  return file;
}

absl::StatusOr<std::string> Directory::Read(const std::string& name,
                                            int64_t max_bytes) const {
  HT_ASSIGN_OR_RETURN(const Descriptor file, OpenToRead(name));
  struct stat info;
  if (::fstat(file.get(), &info) != 0) {
    return Failed(PathOf(name), "cannot read");
  }
  if (info.st_size > max_bytes) {
    return ModelError(PathOf(name), ": ", info.st_size,
                      " bytes, more than the limit of ", max_bytes);
  }
  std::string content(info.st_size, '\0');
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = Retried([&] {
      return ::read(file.get(), &content[done], content.size() - done);
    });
    if (n < 0) return Failed(PathOf(name), "cannot read");
    if (n == 0) break;
    done += n;
  }
  content.resize(done);
  return content;
}

absl::StatusOr<Descriptor> Directory::OpenNew(const std::string& name) const {
  for (int tries = 0; tries < 2; ++tries) {
    Descriptor file(Retried([&] {
      return ::openat(fd_.get(), name.c_str(),
                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                      0644);
    }));
    if (file.get() >= 0) return file;
    if (errno != EEXIST || !Unlink(name)) break;
  }
  return Failed(PathOf(name), "cannot write");
}

absl::StatusOr<Descriptor> Directory::OpenToAppend(
    const std::string& name) const {
  Descriptor file(Retried([&] {
    return ::openat(fd_.get(), name.c_str(),
                    O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  }));
  if (file.get() < 0 && errno == ELOOP) return IsALink(PathOf(name), "a file");
  if (file.get() < 0) return Failed(PathOf(name), "cannot be written");
  return file;
}

absl::Status Directory::Write(const std::string& name,
                              absl::string_view content) const {
  const std::string temporary = name + ".tmp";
  absl::Status status;
  {
    const absl::StatusOr<Descriptor> file = OpenNew(temporary);
    if (!file.ok()) return Failed(PathOf(name), "cannot write");
    status = WriteAndSync(file->get(), PathOf(name), content);
  }
  if (status.ok()) status = Rename(temporary, name);
  if (!status.ok()) Unlink(temporary);
  return status;
}

absl::Status Directory::Rename(const std::string& from,
                               const std::string& to) const {
  if (Retried([&] {
        return ::renameat(fd_.get(), from.c_str(), fd_.get(), to.c_str());
      }) == 0) {
    return absl::OkStatus();
  }
  return Failed(PathOf(to), "cannot replace");
}

absl::Status Directory::Exchange(const std::string& a,
                                 const std::string& b) const {
  if (Retried([&] {
        return ::renameat2(fd_.get(), a.c_str(), fd_.get(), b.c_str(),
                           RENAME_EXCHANGE);
      }) == 0) {
    return absl::OkStatus();
  }
  return Failed(PathOf(b), "cannot replace");
}

bool Directory::Unlink(const std::string& name) const {
  return Retried([&] { return ::unlinkat(fd_.get(), name.c_str(), 0); }) == 0 ||
         errno == ENOENT;
}

bool Directory::RemoveEmpty(const std::string& name) const {
  return Retried([&] {
           return ::unlinkat(fd_.get(), name.c_str(), AT_REMOVEDIR);
         }) == 0 ||
         errno == ENOENT;
}

void Directory::Sync() const {
  Retried([&] { return ::fsync(fd_.get()); });
}

absl::Status WriteAndSync(int fd, const std::string& path,
                          absl::string_view content) {
  while (!content.empty()) {
    const ssize_t n =
        Retried([&] { return ::write(fd, content.data(), content.size()); });
    if (n < 0) return Failed(path, "cannot write");
    content.remove_prefix(n);
  }
  if (Retried([&] { return ::fsync(fd); }) != 0) {
    return Failed(path, "cannot write");
  }
  return absl::OkStatus();
}

}  // namespace halftone
