#include "tools/command.h"

#include <algorithm>
#include <cstdio>

#include "graph/base/display.h"
#include "graph/base/error.h"
#include "tools/common/command_line.h"
#include "tools/common/launch_command.h"
#include "tools/common/show_error.h"
#include "tools/verb.h"

namespace halftone {
namespace {

// Whether stdout is to have one JSON object. What stands behind -- is another
// program's.
bool WantsJson(const std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::find(words.begin(), end, "--json") != end;
}

// The exit code of what has succeeded, if all that it showed has arrived.
int Finish(int exit_code) {
  const absl::Status shown = CheckStdout();
  const bool fine = exit_code == static_cast<int>(ExitCode::kOk) ||
                    exit_code == static_cast<int>(ExitCode::kDiffer);
  return fine && !shown.ok() ? tools::ShowError(shown) : exit_code;
}

}  // namespace

int RunCommand(std::vector<std::string> words) {
  StartShowing();
  tools::CommandLine line("halftone");
  tools::Outcome outcome;
  tools::AddVerbs(line.program(), &outcome, words.empty() ? "" : words[0]);
  tools::ExpectJson(WantsJson(words));
  tools::MarkLaunchedCommand(&words);
  const absl::StatusOr<std::string> help = line.Parse(words);
  if (!help.ok()) outcome.status = help.status();
  if (!outcome.status.ok()) return tools::ShowError(outcome.status);
  Show(*help, stdout);
  return Finish(outcome.exit_code);
}

}  // namespace halftone
