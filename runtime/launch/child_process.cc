#include "runtime/launch/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "graph/base/retry.h"
#include "graph/base/system/system_error.h"

namespace halftone {
namespace runtime {
namespace {

// All that the child needs between fork and exec, where it may not allocate.
struct Prepared {
  std::string path;
  std::vector<std::string> variables;
  std::vector<char*> argv;
  std::vector<char*> envp;
};

bool IsExecutable(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

}  // namespace

absl::StatusOr<std::string> FindProgram(const std::string& name,
                                        const Environment& env) {
  if (absl::StrContains(name, '/')) {
    if (IsExecutable(name)) return name;
    return UsageError("cannot start ", name,
                      ": no such file, or it is not executable");
  }
  auto path = env.find("PATH");
  const std::string list = path == env.end() ? "/usr/bin:/bin" : path->second;
  for (absl::string_view folder : absl::StrSplit(list, ':')) {
    const std::string full =
        absl::StrCat(folder.empty() ? "." : folder, "/", name);
    if (IsExecutable(full)) return full;
  }
  return UsageError("cannot start ", name, ": it is not in PATH");
}

namespace {

absl::StatusOr<Prepared> Prepare(const ChildOptions& options) {
  if (options.command.empty()) return UsageError("launch: no command given");
  Prepared prepared;
  HT_ASSIGN_OR_RETURN(prepared.path,
                      FindProgram(options.command[0], options.env));
  for (const auto& [name, value] : options.env) {
    prepared.variables.push_back(absl::StrCat(name, "=", value));
  }
  for (std::string& variable : prepared.variables) {
    prepared.envp.push_back(&variable[0]);
  }
  prepared.envp.push_back(nullptr);
  for (const std::string& word : options.command) {
    prepared.argv.push_back(const_cast<char*>(word.c_str()));
  }
  prepared.argv.push_back(nullptr);
  return prepared;
}

// The read end does not block, both ends close in programs that are started.
absl::Status MakePipe(Socket& read_end, Socket& write_end) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return SystemError(ExitCode::kDevice, errno, "cannot make a pipe");
  }
  read_end = Socket(ends[0]);
  write_end = Socket(ends[1]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return absl::OkStatus();
}

// In the child. `report` takes the error number if the program cannot run.
[[noreturn]] void Become(const Prepared& prepared, pid_t parent, int out,
                         int err, int kept_fd, int report) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it has died already
  for (int signal_number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD}) {
    signal(signal_number, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = Retried([] { return open("/dev/null", O_RDONLY); });
  dup2(nothing, 0);
  dup2(out, 1);
  dup2(err, 2);
  if (kept_fd >= 0) fcntl(kept_fd, F_SETFD, 0);
  execve(prepared.path.c_str(), prepared.argv.data(), prepared.envp.data());
  const int error = errno;
  (void)!write(report, &error, sizeof(error));
  _exit(127);
}

}  // namespace

absl::StatusOr<ChildProcess> StartChild(const ChildOptions& options) {
  HT_ASSIGN_OR_RETURN(const Prepared prepared, Prepare(options));
  ChildProcess child;
  Socket out;
  Socket err;
  Socket report_read;
  Socket report;
  HT_RETURN_IF_ERROR(MakePipe(child.out, out));
  HT_RETURN_IF_ERROR(MakePipe(child.err, err));
  HT_RETURN_IF_ERROR(MakePipe(report_read, report));
  fcntl(report_read.fd(), F_SETFL, 0);  // this one is waited for
  const pid_t parent = getpid();
  child.pid = fork();
  if (child.pid == 0) {
    Become(prepared, parent, out.fd(), err.fd(), options.kept_fd, report.fd());
  }
  if (child.pid < 0) {
    return OutOfMemoryError("cannot start a process: ", std::strerror(errno));
  }
  setpgid(child.pid, child.pid);  // whoever of the two is first
  report.Close();
  int error = 0;
  const ssize_t told =
      Retried([&] { return read(report_read.fd(), &error, sizeof(error)); });
  if (told != sizeof(error)) {
    return {std::move(child)};  // closed by a successful exec
  }
  Retried([&] { return waitpid(child.pid, nullptr, 0); });
  return SystemError(ExitCode::kUsage, error,
                     absl::StrCat("cannot start ", prepared.path));
}

int ExitCodeOfWait(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status)
                                : 128 + WTERMSIG(wait_status);
}

}  // namespace runtime
}  // namespace halftone
