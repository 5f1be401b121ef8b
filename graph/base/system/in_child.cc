#include "graph/base/system/in_child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "graph/base/error.h"
#include "graph/base/retry.h"
#include "graph/base/system/system_error.h"

namespace halftone {
namespace {

void WriteAll(int to, const std::string& text) {
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t n = Retried(
        [&] { return write(to, text.data() + sent, text.size() - sent); });
    if (n <= 0) return;
    sent += n;
  }
}

std::string ReadAll(int from) {
  std::string all;
  char buffer[4096];
  while (true) {
    const ssize_t n =
        Retried([&] { return read(from, buffer, sizeof(buffer)); });
    if (n <= 0) return all;
    all.append(buffer, n);
  }
}

[[noreturn]] void Child(unsigned seconds, int to,
                        absl::FunctionRef<void(Say say)> work) {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  for (int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGALRM}) {
    ::signal(signal, SIG_DFL);
  }
  // Nobody is to read what it prints.
  const int quiet = open("/dev/null", O_RDWR);
  if (quiet >= 0) {
    for (int fd : {0, 1, 2}) dup2(quiet, fd);
  }
  alarm(seconds);
  work([to](const std::string& text) { WriteAll(to, text); });
  _exit(0);
}

}  // namespace

absl::StatusOr<EndOfChild> RunInChild(unsigned seconds,
                                      absl::FunctionRef<void(Say say)> work) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return SystemError(ExitCode::kDevice, errno, "cannot make a pipe");
  }
  const pid_t child = fork();
  if (child == 0) Child(seconds, ends[1], work);
  const int error = errno;
  close(ends[1]);
  EndOfChild end;
  if (child > 0) end.said = ReadAll(ends[0]);
  close(ends[0]);
  if (child < 0) {
    return SystemError(ExitCode::kDevice, error, "cannot start a process");
  }
  Retried([&] { return waitpid(child, &end.wait_status, 0); });
  return end;
}

}  // namespace halftone
