// TryInChild of library_file.h.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "graph/base/error.h"
#include "kernels/plugin/library_file.h"

namespace halftone {
namespace kernels {
namespace {

constexpr unsigned kSeconds = 30;  // that a library may take to load

// What the child says with its last breath: the class of an error, its text.
void Tell(int to, const absl::Status& status) {
  std::string text(1, static_cast<char>(ExitCodeOf(status)));
  text.append(status.message().data(), status.message().size());
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t n = write(to, text.data() + sent, text.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    sent += n;
  }
}

[[noreturn]] void Child(int to, const std::function<absl::Status()>& look) {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  for (int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGALRM}) {
    ::signal(signal, SIG_DFL);
  }
  // What it prints, it prints again in this process.
  const int quiet = open("/dev/null", O_RDWR);
  if (quiet >= 0) {
    for (int fd : {0, 1, 2}) dup2(quiet, fd);
  }
  alarm(kSeconds);
  Tell(to, look());
  _exit(0);
}

std::string ReadAll(int from) {
  std::string all;
  char buffer[4096];
  while (true) {
    const ssize_t n = read(from, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return all;
    all.append(buffer, n);
  }
}

absl::Status Ended(const std::string& path, int status) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    return ModelError(path, ": it takes more than ", kSeconds,
                      " seconds to load");
  }
  if (WIFSIGNALED(status)) {
    return ModelError(path, ": it ends the process while it is loaded: ",
                      strsignal(WTERMSIG(status)));
  }
  return ModelError(path, ": it ends the process while it is loaded: exit(",
                    WEXITSTATUS(status), ")");
}

}  // namespace

absl::Status TryInChild(const std::string& path,
                        const std::function<absl::Status()>& look) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return DeviceError(path, ": no pipe: ", strerror(errno));
  }
  const pid_t child = fork();
  if (child == 0) Child(ends[1], look);
  close(ends[1]);
  const std::string said = child < 0 ? "" : ReadAll(ends[0]);
  close(ends[0]);
  if (child < 0) return DeviceError(path, ": no process: ", strerror(errno));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (said.empty()) return Ended(path, status);
  const auto code = static_cast<ExitCode>(said[0]);
  if (code == ExitCode::kOk) return absl::OkStatus();
  return MakeError(code, said.substr(1));
}

}  // namespace kernels
}  // namespace halftone
