// Preloaded into a program, makes the N-th of its calls that change the file
// system fail: what opens a file to write, writes, syncs, cuts, renames, makes
// or removes.
//   HT_FAIL_WRITE=N:E   call N fails with errno E; all behind it, too, with
//                       N:E+
//   HT_FAIL_WRITE=N:D   before call N directory D is renamed to D.gone
//   HT_COUNT_WRITES=F   how many calls there were is written to file F
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "tests/faults/next_call.h"

namespace {

std::atomic<long> calls{0};

// Counts a call; whether it is to fail, with errno set.
bool Fails() {
  const long call = ++calls;
  const char* rule = getenv("HT_FAIL_WRITE");
  if (rule == nullptr) return false;
  char* end = nullptr;
  const long n = strtol(rule, &end, 10);
  if (*end != ':' || call < n) return false;
  const char* what = end + 1;
  if (*what == '/') {
    char gone[4096];
    snprintf(gone, sizeof(gone), "%s.gone", what);
    if (call == n) syscall(SYS_rename, what, gone);
    return false;
  }
  if (call > n && what[strlen(what) - 1] != '+') return false;
  errno = atoi(what);
  return true;
}

// Consoles, pipes and sockets are nobody's disk.
bool IsOnDisk(int fd) {
  struct stat facts;
  return fstat(fd, &facts) == 0 &&
         (S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode));
}

bool OpensToWrite(int flags) {
  return (flags & (O_CREAT | O_WRONLY | O_RDWR)) != 0 &&
         (flags & O_DIRECTORY) == 0;
}

struct Counter {
  ~Counter() {
    const char* path = getenv("HT_COUNT_WRITES");
    if (path == nullptr) return;
    char text[32];
    const int size = snprintf(text, sizeof(text), "%ld", calls.load());
    const int fd = static_cast<int>(
        syscall(SYS_open, path, O_WRONLY | O_CREAT | O_TRUNC, 0600));
    syscall(SYS_write, fd, text, static_cast<size_t>(size));
    close(fd);
  }
} counter;

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  MODE_OF(flags);
  if (OpensToWrite(flags) && Fails()) return -1;
  return static_cast<int>(Next("open", path, flags, mode));
}
int open64(const char* path, int flags, ...) {
  MODE_OF(flags);
  if (OpensToWrite(flags) && Fails()) return -1;
  return static_cast<int>(Next("open64", path, flags, mode));
}
int openat(int at, const char* path, int flags, ...) {
  MODE_OF(flags);
  if (OpensToWrite(flags) && Fails()) return -1;
  return static_cast<int>(Next("openat", at, path, flags, mode));
}
int openat64(int at, const char* path, int flags, ...) {
  MODE_OF(flags);
  if (OpensToWrite(flags) && Fails()) return -1;
  return static_cast<int>(Next("openat64", at, path, flags, mode));
}
ssize_t write(int fd, const void* data, size_t size) {
  if (IsOnDisk(fd) && Fails()) return -1;
  return Next("write", fd, data, size);
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  if (IsOnDisk(fd) && Fails()) return -1;
  return Next("pwrite", fd, data, size, at);
}
int fsync(int fd) {
  if (IsOnDisk(fd) && Fails()) return -1;
  return static_cast<int>(Next("fsync", fd));
}
int fdatasync(int fd) {
  if (IsOnDisk(fd) && Fails()) return -1;
  return static_cast<int>(Next("fdatasync", fd));
}
int ftruncate(int fd, off_t size) noexcept {
  return Fails() ? -1 : static_cast<int>(Next("ftruncate", fd, size));
}
int ftruncate64(int fd, off64_t size) noexcept {
  return Fails() ? -1 : static_cast<int>(Next("ftruncate64", fd, size));
}
int rename(const char* from, const char* to) noexcept {
  return Fails() ? -1 : static_cast<int>(Next("rename", from, to));
}
int renameat(int a, const char* from, int b, const char* to) noexcept {
  return Fails() ? -1 : static_cast<int>(Next("renameat", a, from, b, to));
}
int renameat2(int a, const char* from, int b, const char* to,
              unsigned flags) noexcept {
  return Fails() ? -1
                 : static_cast<int>(Next("renameat2", a, from, b, to, flags));
}
int mkdir(const char* path, mode_t mode) noexcept {
  return Fails() ? -1 : static_cast<int>(Next("mkdir", path, mode));
}
int mkdirat(int at, const char* path, mode_t mode) noexcept {
  return Fails() ? -1 : static_cast<int>(Next("mkdirat", at, path, mode));
}
int unlinkat(int at, const char* path, int flags) noexcept {
  return Fails() ? -1 : static_cast<int>(Next("unlinkat", at, path, flags));
}

}  // extern "C"
