#include "tools/command.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "tools/common/command_line.h"
#include "tools/common/launch_command.h"
#include "tools/verb.h"

namespace halftone {
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

}  // namespace

int RunCommand(std::vector<std::string> words) {
  tools::CommandLine line("halftone");
  tools::Outcome outcome;
  tools::AddVerbs(line.program(), &outcome);
  tools::MarkLaunchedCommand(&words);
  const absl::StatusOr<std::string> help = line.Parse(words);
  if (!help.ok()) return Fail(help.status());
  Show(*help, stdout);
  if (!outcome.status.ok()) return Fail(outcome.status);
  return Finish(outcome.exit_code);
}

}  // namespace halftone
