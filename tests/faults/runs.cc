#include "tests/faults/runs.h"

#include <sys/wait.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/faults/faults.h"

namespace halftone {

Parts RunCommand(const std::string& out, const Parts& more,
                 const std::string& checkpoint_every) {
  Parts command = {"run",           Convnet(), "--data",
                   kDigits,         "--out",   out,
                   "--log-every",   "1",       "--checkpoint-every",
                   checkpoint_every};
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

std::string TrainedRun() {
  static const std::string* trained = [] {
    auto* out = new std::string(Scratch() + "/run");
    const Result run = Halftone(RunCommand(*out, {"--epochs", "2"}));
    EXPECT_EQ(run.exit_code(), 0) << run.err;
    return out;
  }();
  const std::string copy = Scratch() + "/run";
  std::filesystem::copy(*trained, copy,
                        std::filesystem::copy_options::recursive);
  return copy;
}

void WaitUntil(const Child& child, const std::function<bool()>& holds) {
  for (int tries = 0; tries < 3000; ++tries) {
    if (holds()) return;
    siginfo_t ended = {};
    waitid(P_PID, child.pid, &ended, WEXITED | WNOHANG | WNOWAIT);
    if (ended.si_pid != 0) break;
    absl::SleepFor(absl::Milliseconds(20));
  }
  FAIL() << "what was waited for did not come: " << ReadAll(child.err);
}

Child StartRun(const std::string& out, const std::string& checkpoint_every) {
  static int runs = 0;
  Parts command = RunCommand(out, {"--epochs", "1000"}, checkpoint_every);
  command.insert(command.begin(), "tools/halftone");
  return Start(absl::StrCat("going-", runs++), command, OwnVariables());
}

}  // namespace halftone
