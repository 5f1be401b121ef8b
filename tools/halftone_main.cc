// The `halftone` binary: what a process needs before its command runs
// (tools/command.h).
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "graph/base/display.h"
#include "graph/base/out_of_memory.h"
#include "tools/command.h"

namespace halftone {
namespace tools {
namespace {

// Compute threads that wait for each other spin by default, and a step takes
// twenty times as long where something else wants the cores. Sleeping costs an
// idle machine little. GNU OpenMP reads the policy when a program is loaded, so
// verbs that compute start themselves once more; pid and open files stay.
void LetThreadsSleep(char** argv) {
  const std::string verb = argv[1] == nullptr ? "" : argv[1];
  if (verb != "run" && verb != "eval" && verb != "tune") return;
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/1);
  execv("/proc/self/exe", argv);  // where that fails, they spin
}

// Under /proc/self/exe a process is called "exe".
void TakeOwnName() { prctl(PR_SET_NAME, program_invocation_short_name); }

// A file, or memory shared with other ranks, beyond the process's limit
// (ulimit -f) is an error. What `launch` starts may think otherwise.
void ReportFilesThatAreTooLarge(char** argv) {
  const std::string verb = argv[1] == nullptr ? "" : argv[1];
  if (verb != "launch") signal(SIGXFSZ, SIG_IGN);
}

int Main(int argc, char** argv) {
  OpenStandardStreams();
  LetThreadsSleep(argv);
  ReportFilesThatAreTooLarge(argv);
  TakeOwnName();
  return RunCommand({argv + 1, argv + argc});
}

}  // namespace
}  // namespace tools
}  // namespace halftone

// Before the libraries' own initialisation, which needs memory, too. (Where a
// sanitizer is, its own comes first.)
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((section(".preinit_array"), used)) void (*const end_when_out)() =
    &halftone::EndWhenOutOfMemory;
#endif

int main(int argc, char** argv) {
  halftone::EndWhenOutOfMemory();
  const halftone::Doing doing("running halftone", argc > 1 ? argv[1] : "");
  const int code = halftone::tools::Main(argc, argv);
  halftone::MayExitNow();
  return code;
}
