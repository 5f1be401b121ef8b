#include "tools/command.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "nlohmann/json.hpp"
#include "tools/common/command_line.h"
#include "tools/common/json_text.h"
#include "tools/common/launch_command.h"
#include "tools/verb.h"

namespace halftone {
namespace {

// For a program that waits for JSON: what it gets instead.
std::string ErrorJson(const absl::Status& status) {
  return tools::JsonText(
      nlohmann::ordered_json{{"schema", 1},
                             {"error",
                              {{"exit", static_cast<int>(ExitCodeOf(status))},
                               {"message", std::string(status.message())}}}});
}

// Whether stdout is to have one JSON object. What stands behind -- is another
// program's.
bool WantsJson(const std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::find(words.begin(), end, "--json") != end;
}

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
  const bool wants_json = WantsJson(words);
  tools::MarkLaunchedCommand(&words);
  const absl::StatusOr<std::string> help = line.Parse(words);
  if (!help.ok()) outcome.status = help.status();
  if (!outcome.status.ok()) {
    // A report that came before it is the object.
    if (wants_json && !HasShownOnStdout()) {
      Show(ErrorJson(outcome.status), stdout);
    }
    return Fail(outcome.status);
  }
  Show(*help, stdout);
  return Finish(outcome.exit_code);
}

}  // namespace halftone
