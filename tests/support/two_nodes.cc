#include "tests/support/two_nodes.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace halftone {
namespace {

constexpr char kShell[] = "/bin/sh";
constexpr char kPath[] = "PATH=$PATH:/usr/sbin:/sbin:/usr/bin:/bin; ";

Result Sh(const std::string& script) {
  return RunProgram({kShell, "-ec", kPath + script});
}

// With all rights over the networks that it makes, and its own user outside.
std::string EnterUserNamespace() {
  const std::string ids[] = {absl::StrCat("0 ", geteuid(), " 1"),
                             absl::StrCat("0 ", getegid(), " 1")};
  if (unshare(CLONE_NEWUSER) != 0) return "unshare(CLONE_NEWUSER) is refused";
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << ids[0];
  std::ofstream("/proc/self/gid_map") << ids[1];
  return "";
}

std::string NetworkOf(const std::string& pid) {
  char name[64] = {};
  return readlink(absl::StrCat("/proc/", pid, "/ns/net").c_str(), name, 63) < 0
             ? ""
             : name;
}

}  // namespace

TwoNodes::~TwoNodes() {
  for (const Child& holder : holders_) {
    Signal(holder.pid, SIGKILL);
    Wait(holder);
  }
}

std::string TwoNodes::AddressOf(int node) {
  return absl::StrCat("10.217.0.", node + 1);
}

std::string TwoNodes::Make() {
  if (Sh("unshare --net true").exit_code() != 0) {
    const std::string refused = EnterUserNamespace();
    if (!refused.empty()) return refused;
  }
  const Result tried = Sh("unshare --net ip link set lo up; nsenter --version");
  if (tried.exit_code() != 0) return tried.err;
  for (int node = 0; node < 2; ++node) {
    holders_.push_back(Start(
        absl::StrCat("namespace-", node),
        {kShell, "-c", absl::StrCat(kPath, "exec unshare --net sleep 3600")},
        OwnVariables()));
    const std::string pid = absl::StrCat(holders_[node].pid);
    for (int i = 0; i < 1000 && NetworkOf(pid) == NetworkOf("self"); ++i) {
      usleep(10000);
    }
  }
  std::string script =
      absl::StrCat("on() { pid=$1; shift; nsenter --net=/proc/$pid/ns/net ",
                   "\"$@\"; }; on ", holders_[0].pid,
                   " ip link add cable type veth peer name cable netns ",
                   holders_[1].pid, "; ");
  for (int node = 0; node < 2; ++node) {
    const std::string on = absl::StrCat("on ", holders_[node].pid);
    absl::StrAppend(&script, on, " ip link set lo up; ", on, " ip addr add ",
                    AddressOf(node), "/24 dev cable; ", on,
                    " ip link set cable up; ");
  }
  const Result made = Sh(script);
  return made.exit_code() == 0 ? "" : made.err;
}

std::vector<std::string> TwoNodes::On(
    int node, const std::vector<std::string>& command) const {
  std::vector<std::string> words = {
      "/usr/bin/nsenter",
      absl::StrCat("--net=/proc/", holders_[node].pid, "/ns/net")};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

void TwoNodes::CutCable() {
  Sh(absl::StrCat("nsenter --net=/proc/", holders_[0].pid,
                  "/ns/net ip link set cable down"));
}

std::vector<pid_t> ProcessesOf(const std::string& mark) {
  std::vector<pid_t> found;
  DIR* proc = opendir("/proc");
  while (const dirent* entry = proc == nullptr ? nullptr : readdir(proc)) {
    pid_t pid = 0;
    if (absl::SimpleAtoi(entry->d_name, &pid) && pid != getpid() &&
        absl::StrContains(
            ReadAll(absl::StrCat("/proc/", entry->d_name, "/cmdline")), mark)) {
      found.push_back(pid);
    }
  }
  if (proc != nullptr) closedir(proc);
  return found;
}

}  // namespace halftone
