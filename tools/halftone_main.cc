// The `halftone` binary: parses the verb, runs it, turns its status into an
// exit code and an error line on stderr.
#include <errno.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "graph/base/out_of_memory.h"
#include "graph/base/text.h"
#include "tools/common/command_line.h"
#include "tools/common/launch_command.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

int Fail(const absl::Status& status) {
  // What goes on in another line stands below, not at the margin.
  const std::string text =
      absl::StrReplaceAll(status.message(), {{"\n", "\n         "}});
  ShowReport(absl::StrCat("error    ", text, "\n"), stderr);
  return static_cast<int>(ExitCodeOf(status));
}

// The exit code of what has succeeded, if all that it showed has arrived.
int Finish(int exit_code) {
  const absl::Status shown = CheckStdout();
  const bool fine = exit_code == static_cast<int>(ExitCode::kOk) ||
                    exit_code == static_cast<int>(ExitCode::kDiffer);
  return fine && !shown.ok() ? Fail(shown) : exit_code;
}

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

int Main(int argc, char** argv) {
  OpenStandardStreams();
  LetThreadsSleep(argv);
  TakeOwnName();
  CommandLine line("halftone");
  Outcome outcome;
  AddVerbs(line.program(), &outcome);
  std::vector<std::string> words(argv + 1, argv + argc);
  MarkLaunchedCommand(&words);
  const absl::StatusOr<std::string> help = line.Parse(words);
  if (!help.ok()) return Fail(help.status());
  Show(*help, stdout);
  if (!outcome.status.ok()) return Fail(outcome.status);
  return Finish(outcome.exit_code);
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
