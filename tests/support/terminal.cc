#include "tests/support/terminal.h"

#include <pty.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"

namespace halftone {

std::string OnTerminal(const std::string& command, unsigned short columns) {
  winsize size = {};
  size.ws_row = 50;
  size.ws_col = columns;
  int terminal = -1;
  const pid_t pid = forkpty(&terminal, nullptr, nullptr, &size);
  EXPECT_GE(pid, 0);
  if (pid == 0) {
    setenv("TERM", "xterm", 1);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  std::string shown;
  char buffer[4096];
  ssize_t n;
  while ((n = read(terminal, buffer, sizeof(buffer))) > 0) {
    shown.append(buffer, n);
  }
  close(terminal);
  waitpid(pid, nullptr, 0);
  return absl::StrReplaceAll(shown, {{"\r\n", "\n"}});
}

}  // namespace halftone
