// Preloaded into a program, lets every other call of each of these functions
// fail as one that a signal interrupts does. (Not connect: Gloo's own is not
// made again.)
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "tests/faults/next_call.h"

namespace {

bool Interrupts(std::atomic<int>& calls) {
  if (calls++ % 2 != 0) return false;
  errno = EINTR;
  return true;
}

}  // namespace

#define INTERRUPT()                   \
  do {                                \
    static std::atomic<int> calls{0}; \
    if (Interrupts(calls)) return -1; \
  } while (false)

// Results are ints but for read and write.
#define INT_NEXT(...) static_cast<int>(Next(__VA_ARGS__))

extern "C" {

int open(const char* path, int flags, ...) {
  INTERRUPT();
  MODE_OF(flags);
  return INT_NEXT("open", path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  INTERRUPT();
  MODE_OF(flags);
  return INT_NEXT("open64", path, flags, mode);
}
int openat(int at, const char* path, int flags, ...) {
  INTERRUPT();
  MODE_OF(flags);
  return INT_NEXT("openat", at, path, flags, mode);
}
int mkdir(const char* path, mode_t mode) {
  INTERRUPT();
  return INT_NEXT("mkdir", path, mode);
}
int fsync(int fd) {
  INTERRUPT();
  return INT_NEXT("fsync", fd);
}
int fdatasync(int fd) {
  INTERRUPT();
  return INT_NEXT("fdatasync", fd);
}
int flock(int fd, int operation) noexcept {
  INTERRUPT();
  return INT_NEXT("flock", fd, operation);
}
int rename(const char* from, const char* to) noexcept {
  INTERRUPT();
  return INT_NEXT("rename", from, to);
}
int accept4(int fd, sockaddr* address, socklen_t* length, int flags) {
  INTERRUPT();
  return INT_NEXT("accept4", fd, address, length, flags);
}
int poll(pollfd* fds, nfds_t count, int ms) {
  INTERRUPT();
  return INT_NEXT("poll", fds, count, ms);
}
pid_t waitpid(pid_t pid, int* status, int options) {
  INTERRUPT();
  return INT_NEXT("waitpid", pid, status, options);
}
ssize_t read(int fd, void* to, size_t n) {
  INTERRUPT();
  return Next("read", fd, to, n);
}
ssize_t write(int fd, const void* from, size_t n) {
  INTERRUPT();
  return Next("write", fd, from, n);
}

}  // extern "C"
