#include "runtime/rendezvous/same_machine.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "graph/base/retry.h"
#include "graph/base/system/system_error.h"
#include "graph/base/text.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int kEnds[] = {SIGINT, SIGTERM, SIGHUP};
// Of the one UnlinkedIfEnded, for its handler.
char ended_path[PATH_MAX];
std::atomic<bool> ended_path_taken{false};

void UnlinkAndEnd(int number) {
  ::unlink(ended_path);
  ::signal(number, SIG_DFL);
  ::raise(number);  // comes when this handler is left
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

struct Process {
  int parent = 0;
  std::string started;  // in ticks since the machine's start
};

// From /proc/PID/stat; the name in it may hold blanks and brackets.
std::optional<Process> Look(int pid) {
  const std::string text = ReadAll(absl::StrCat("/proc/", pid, "/stat"));
  const size_t bracket = text.rfind(')');
  if (bracket == std::string::npos) return std::nullopt;
  const std::vector<std::string> fields =
      absl::StrSplit(text.substr(bracket + 1), ' ', absl::SkipEmpty());
  Process process;
  if (fields.size() < 20 || !absl::SimpleAtoi(fields[1], &process.parent)) {
    return std::nullopt;
  }
  process.started = fields[19];
  return process;
}

bool HasVariable(int pid, const std::string& name) {
  const std::string text = ReadAll(absl::StrCat("/proc/", pid, "/environ"));
  for (absl::string_view entry : absl::StrSplit(text, '\0')) {
    if (absl::StartsWith(entry, name + "=")) return true;
  }
  return false;
}

// By another user, or by what is no directory.
bool IsTaken(const std::string& folder) {
  struct stat info;
  return lstat(folder.c_str(), &info) == 0 &&
         (!S_ISDIR(info.st_mode) || info.st_uid != geteuid());
}

}  // namespace

absl::StatusOr<std::string> MeetingFile(const std::string& directory,
                                        const std::string& job_id) {
  std::string folder = absl::StrCat(directory.empty() ? "/tmp" : directory,
                                    "/halftone-", geteuid());
  // Whoever takes that name first does not keep others' ranks from meeting;
  // all ranks of a machine see the same, and go to the same place.
  const char* home = getenv("HOME");
  if (IsTaken(folder) && home != nullptr && home[0] == '/') {
    folder = absl::StrCat(home, "/.halftone-meetings");
  }
  if (Retried([&] { return mkdir(folder.c_str(), 0700); }) != 0 &&
      errno != EEXIST) {
    return SystemError(ExitCode::kCommunication, errno,
                       absl::StrCat("cannot make ", folder), "set TMPDIR");
  }
  struct stat info;
  if (lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) ||
      info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
    return CommunicationError(
        folder,
        " is not a directory that only this user can use (mode 0700); "
        "remove it or set TMPDIR");
  }
  return absl::StrCat(folder, "/meet-", Hex64(StableHash(job_id)));
}

absl::Status WriteMeetingFile(const std::string& path,
                              const MeetingPoint& point) {
  const std::string draft = absl::StrCat(path, ".", getpid());
  unlink(draft.c_str());
  const int fd = Retried([&] {
    return open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  });
  const std::string text =
      absl::StrCat(ToString(point.address), "\n", point.token, "\n");
  const auto write_text = [&] { return write(fd, text.data(), text.size()); };
  const bool written =
      fd >= 0 && Retried(write_text) == static_cast<ssize_t>(text.size());
  if (fd >= 0) close(fd);
  const auto rename_it = [&] { return rename(draft.c_str(), path.c_str()); };
  if (!written || Retried(rename_it) != 0) {
    const int error = errno;
    unlink(draft.c_str());
    return SystemError(ExitCode::kCommunication, error,
                       absl::StrCat("cannot write ", path), "set TMPDIR");
  }
  return absl::OkStatus();
}

std::optional<MeetingPoint> ReadMeetingFile(const std::string& path) {
  const std::vector<std::string> lines = absl::StrSplit(ReadAll(path), '\n');
  if (lines.size() != 3) return std::nullopt;
  absl::StatusOr<HostPort> address = ParseHostPort(path, lines[0]);
  if (!address.ok()) return std::nullopt;
  return MeetingPoint{*address, lines[1]};
}

UnlinkedIfEnded::UnlinkedIfEnded(const std::string& path) {
  if (path.size() >= sizeof(ended_path)) return;
  holds_ = !ended_path_taken.exchange(true);
  if (!holds_) return;
  std::memcpy(ended_path, path.c_str(), path.size() + 1);
  for (const int number : kEnds) {
    struct sigaction now = {};
    if (::sigaction(number, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) {
      continue;
    }
    struct sigaction ours = {};
    ours.sa_handler = UnlinkAndEnd;
    ours.sa_flags = SA_RESTART;
    ::sigaction(number, &ours, nullptr);
  }
}

UnlinkedIfEnded::~UnlinkedIfEnded() {
  if (!holds_) return;
  for (const int number : kEnds) {
    struct sigaction now = {};
    if (::sigaction(number, nullptr, &now) == 0 &&
        now.sa_handler == UnlinkAndEnd) {
      ::signal(number, SIG_DFL);
    }
  }
  ended_path_taken = false;
}

std::string LauncherIdentity(const std::string& rank_variable) {
  std::optional<Process> process = Look(getpid());
  int pid = getpid();
  while (process && process->parent > 1) {
    pid = process->parent;
    process = Look(pid);
    // One of another user, which cannot be read, has not the variable either.
    if (!HasVariable(pid, rank_variable)) break;
  }
  return absl::StrCat("pid ", pid, " ", process ? process->started : "");
}

}  // namespace runtime
}  // namespace halftone
