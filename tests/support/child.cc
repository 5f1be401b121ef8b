#include "tests/support/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) pointers.push_back(&string[0]);
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

int Result::exit_code() const {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::map<std::string, std::string> OwnVariables() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    variables[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
  }
  return variables;
}

Child Start(const std::string& name, const std::vector<std::string>& command,
            const std::map<std::string, std::string>& env) {
  Child child;
  child.out = absl::StrCat(::testing::TempDir(), "/", name, ".out");
  child.err = absl::StrCat(::testing::TempDir(), "/", name, ".err");
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&files, 1, child.out.c_str(), flags, 0600);
  posix_spawn_file_actions_addopen(&files, 2, child.err.c_str(), flags, 0600);
  std::vector<std::string> variables;
  for (const auto& [key, value] : env) {
    if (key == "TMPDIR") continue;
    variables.push_back(absl::StrCat(key, "=", value));
  }
  variables.push_back(absl::StrCat("TMPDIR=", ::testing::TempDir()));
  std::vector<std::string> arguments = command;
  EXPECT_EQ(posix_spawn(&child.pid, command[0].c_str(), &files, nullptr,
                        Pointers(arguments).data(), Pointers(variables).data()),
            0)
      << command[0];
  posix_spawn_file_actions_destroy(&files);
  return child;
}

Result Wait(const Child& child) {
  Result result;
  struct rusage usage = {};
  result.status = 127 << 8;  // as a shell has it
  if (child.pid > 0) wait4(child.pid, &result.status, 0, &usage);
  result.peak_bytes = int64_t{usage.ru_maxrss} * 1024;
  result.out = ReadAll(child.out);
  result.err = ReadAll(child.err);
  return result;
}

void Signal(pid_t pid, int signal) {
  if (pid <= 0) {
    ADD_FAILURE() << "no process to signal: pid " << pid;
    return;
  }
  kill(pid, signal);
}

Result RunProgram(const std::vector<std::string>& command) {
  static int runs = 0;
  return Wait(Start(absl::StrCat("run-", runs++), command, OwnVariables()));
}

}  // namespace halftone
