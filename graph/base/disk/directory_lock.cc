#include "graph/base/disk/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "graph/base/error.h"
#include "graph/base/retry.h"
#include "graph/base/system/system_error.h"

namespace halftone {
namespace {

constexpr int kMostHolder = 400;  // bytes of its line
constexpr std::chrono::milliseconds kLook(20);

std::string Holder() {
  char host[256] = "localhost";
  ::gethostname(host, sizeof(host) - 1);
  return absl::StrCat("pid ", ::getpid(), " on ", host, " since ",
                      absl::FormatTime("%Y-%m-%d %H:%M:%S %z", absl::Now(),
                                       absl::LocalTimeZone()),
                      "\n");
}

// What the holder wrote, fit to be shown: others may write there.
std::string HolderIn(int fd) {
  char bytes[kMostHolder];
  const ssize_t n = ::pread(fd, bytes, sizeof(bytes), 0);
  std::string text(bytes, std::max<ssize_t>(n, 0));
  text = text.substr(0, text.find('\n'));
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isprint(static_cast<unsigned char>(c));
  });
  return plain && !text.empty() ? text : "a process that has not said which";
}

absl::Status InUse(const std::string& path, int fd,
                   absl::string_view flag = "--out") {
  return UsageError(path, " is in use by ", HolderIn(fd),
                    "; wait for it, stop it, or choose another ", flag);
}

// False: somebody else has it. A file system that carries no locks gives one
// to everybody: rather a run without the guard than none.
bool TryLock(int fd) {
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) break;
  }
  return true;
}

// Whether what is held open is what a name stands for.
bool IsHeld(int fd, const struct stat& named) {
  struct stat held;
  return ::fstat(fd, &held) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

// A holder that ended has removed the file: a lock on that is worth nothing.
bool IsStillThere(int fd, const Directory& directory) {
  struct stat named;
  return ::fstatat(directory.fd(), DirectoryLock::kFile, &named,
                   AT_SYMLINK_NOFOLLOW) == 0 &&
         IsHeld(fd, named);
}

// Where a directory held open lies now, as the kernel shows it; empty: it was
// removed, or there is no /proc.
std::string PathNow(int fd) {
  struct stat info;
  if (::fstat(fd, &info) != 0 || info.st_nlink == 0) return "";
  char path[PATH_MAX];
  const ssize_t n =
      ::readlink(absl::StrCat("/proc/self/fd/", fd).c_str(), path, PATH_MAX);
  return std::string(path, std::max<ssize_t>(n, 0));
}

absl::StatusOr<Descriptor> OpenLock(const Directory& directory) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const int fd = Retried([&] {
    return ::openat(directory.fd(), DirectoryLock::kFile, kFlags, 0644);
  });
  if (fd >= 0) return Descriptor(fd);
  const int error = errno;
  return SystemError(
      ExitCode::kModel, error,
      absl::StrCat(directory.PathOf(DirectoryLock::kFile), ": cannot write"));
}

}  // namespace

absl::StatusOr<DirectoryLock> DirectoryLock::Take(const std::string& path,
                                                  absl::Duration patience,
                                                  absl::string_view flag) {
  DirectoryLock lock;
  HT_ASSIGN_OR_RETURN(Directory directory, Directory::Make(path, &lock.made_));
  const auto end =
      std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(patience);
  while (true) {
    HT_ASSIGN_OR_RETURN(lock.file_, OpenLock(directory));
    const int fd = lock.file_.get();
    const bool held = TryLock(fd);
    if (held && IsStillThere(fd, directory)) break;
    if (!held && std::chrono::steady_clock::now() >= end) {
      return InUse(path, fd, flag);
    }
    if (!held) std::this_thread::sleep_for(kLook);
  }
  lock.path_ = path;
  const std::string holder = Holder();
  // Who holds it is for people; that it is held does not depend on it.
  if (::ftruncate(lock.file_.get(), 0) != 0 ||
      ::pwrite(lock.file_.get(), holder.data(), holder.size(), 0) < 0) {
    errno = 0;
  }
  lock.directory_ = std::move(directory);
  return lock;
}

absl::Status DirectoryLock::Check() const {
  if (path_.empty()) return absl::OkStatus();
  struct stat named;
  const bool there =
      Retried([&] { return ::stat(path_.c_str(), &named); }) == 0;
  if (!there && errno != ENOENT) return absl::OkStatus();
  if (there && IsHeld(directory_->fd(), named)) return absl::OkStatus();
  const std::string now = PathNow(directory_->fd());
  return ModelError(
      path_, there ? " names another folder" : " is not there any more",
      ": the one that was locked and written to ",
      now.empty() ? std::string("was removed") : absl::StrCat("is ", now),
      there ? "; the other is left as it is; " : "; ",
      now.empty() ? "start again with an --out of its own"
                  : absl::StrCat("to go on: --resume --out ", now));
}

absl::Status DirectoryLock::Probe(const std::string& path) {
  const auto directory = Directory::Open(path);
  if (!directory.ok()) return absl::OkStatus();
  const auto file = directory->OpenToRead(kFile);
  if (!file.ok()) return absl::OkStatus();
  return TryLock(file->get()) ? absl::OkStatus() : InUse(path, file->get());
}

DirectoryLock::~DirectoryLock() {
  if (path_.empty() || file_.get() < 0) return;
  if (!IsStillThere(file_.get(), *directory_)) return;
  directory_->Unlink(kFile);
  if (made_ && Check().ok()) ::rmdir(path_.c_str());
}

}  // namespace halftone
