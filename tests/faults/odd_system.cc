// Preloaded into a program, makes the system an odd one:
//   HT_CLOCK_JUMPS=S    the time of day is S seconds ahead and back again, in
//                       turns of 100 ms
//   HT_SLOW_FSYNC=MS    every fsync takes so long
//   HT_FAIL_OPEN=P:E    what opens a path that holds P fails with errno E
//   HT_FAIL_SOCKET=E    no socket of a network is made: errno E
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tests/faults/next_call.h"

namespace {

long NumberIn(const char* variable) {
  const char* text = getenv(variable);
  return text == nullptr ? 0 : atol(text);
}

long Ahead() {
  const long jump = NumberIn("HT_CLOCK_JUMPS");
  if (jump == 0) return 0;
  timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_nsec / 100000000 % 2 == 0 ? jump : 0;
}

bool FailsToOpen(const char* path) {
  const char* rule = getenv("HT_FAIL_OPEN");
  if (rule == nullptr || path == nullptr) return false;
  const char* end = strrchr(rule, ':');
  if (end == nullptr || memmem(path, strlen(path), rule, end - rule) == nullptr)
    return false;
  errno = atoi(end + 1);
  return true;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += Ahead();
  return result;
}
int gettimeofday(timeval* time, void*) noexcept {
  const int result = static_cast<int>(syscall(SYS_gettimeofday, time, nullptr));
  if (result == 0) time->tv_sec += Ahead();
  return result;
}
int fsync(int fd) {
  const long ms = NumberIn("HT_SLOW_FSYNC");
  if (ms > 0) usleep(static_cast<useconds_t>(ms * 1000));
  return static_cast<int>(Next("fsync", fd));
}
int open(const char* path, int flags, ...) {
  MODE_OF(flags);
  return FailsToOpen(path) ? -1
                           : static_cast<int>(Next("open", path, flags, mode));
}
int open64(const char* path, int flags, ...) {
  MODE_OF(flags);
  return FailsToOpen(path)
             ? -1
             : static_cast<int>(Next("open64", path, flags, mode));
}
int openat(int at, const char* path, int flags, ...) {
  MODE_OF(flags);
  return FailsToOpen(path)
             ? -1
             : static_cast<int>(Next("openat", at, path, flags, mode));
}
int socket(int domain, int type, int protocol) noexcept {
  const long error = NumberIn("HT_FAIL_SOCKET");
  if (error != 0 && (domain == AF_INET || domain == AF_INET6)) {
    errno = static_cast<int>(error);
    return -1;
  }
  return static_cast<int>(Next("socket", domain, type, protocol));
}

}  // extern "C"
