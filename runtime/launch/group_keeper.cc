#include "runtime/launch/group_keeper.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "graph/base/retry.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int kMaxGroups = 4096;
// More than the launcher has open at any time.
constexpr int kMaxFiles = 4 * kMaxGroups + 64;

// The keeper's life: numbers arrive, a positive one adds a group, a negative
// one removes it. Nothing here allocates or prints.
[[noreturn]] void Keep(int pipe) {
  setsid();  // a terminal's signals are for others
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    signal(number, SIG_IGN);
  }
  // Whoever waits for the end of the launcher's output does not wait for this,
  // and a port of the launcher's does not stay taken by it.
  for (int fd = 0; fd < kMaxFiles; ++fd) {
    if (fd != pipe) close(fd);
  }
  pid_t groups[kMaxGroups];
  int count = 0;
  pid_t told = 0;
  while (true) {
    const ssize_t n = read(pipe, &told, sizeof(told));
    if (n < 0 && errno == EINTR) continue;
    if (n != sizeof(told)) break;
    if (told > 0 && count < kMaxGroups) groups[count++] = told;
    if (told < 0) count = std::remove(groups, groups + count, -told) - groups;
  }
  for (int i = 0; i < count; ++i) kill(-groups[i], SIGKILL);
  _exit(0);
}

}  // namespace

void GroupKeeper::Start() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  Socket read_end(ends[0]);
  pipe_ = Socket(ends[1]);
  keeper_ = fork();
  if (keeper_ == 0) {
    close(ends[1]);
    Keep(ends[0]);
  }
}

GroupKeeper::~GroupKeeper() {
  pipe_.Close();
  if (keeper_ > 0) Retried([&] { return waitpid(keeper_, nullptr, 0); });
}

void GroupKeeper::Add(pid_t group) {
  groups_.push_back(group);
  if (!Tell(group)) StartAgain();
}

void GroupKeeper::Remove(pid_t group) {
  groups_.erase(std::remove(groups_.begin(), groups_.end(), group),
                groups_.end());
  if (!Tell(-group)) StartAgain();
}

bool GroupKeeper::Tell(pid_t group) {
  // A record is far below the size up to which a pipe writes at once. Where
  // there never was a keeper, nothing is lost but this precaution.
  if (!pipe_.open()) return true;
  return Retried([&] { return write(pipe_.fd(), &group, sizeof(group)); }) >=
             0 ||
         errno != EPIPE;
}

void GroupKeeper::StartAgain() {
  pipe_.Close();
  if (keeper_ > 0) Retried([&] { return waitpid(keeper_, nullptr, 0); });
  keeper_ = -1;
  Start();
  for (pid_t group : groups_) (void)Tell(group);
}

}  // namespace runtime
}  // namespace halftone
