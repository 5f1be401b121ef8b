// The `halftone` binary: parses the verb, runs it, turns its status into an
// exit code and an error line on stderr.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "graph/base/error.h"
#include "graph/base/out_of_memory.h"
#include "graph/base/text.h"
#include "tools/common/flags.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "error    %s\n", std::string(status.message()).c_str());
  return static_cast<int>(ExitCodeOf(status));
}

std::vector<std::string> VerbNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({})) {
    names.push_back(verb->get_name());
  }
  return names;
}

// The first word that looks like a flag and is none of the verb's.
std::string UnknownFlag(const CLI::App& verb,
                        const std::vector<std::string>& words) {
  const std::vector<std::string> flags = FlagNames(verb);
  for (const std::string& word : words) {
    if (word == "--") break;
    if (word.rfind("--", 0) != 0) continue;
    const std::string flag = word.substr(0, word.find('='));
    if (std::find(flags.begin(), flags.end(), flag) == flags.end()) {
      return flag;
    }
  }
  return "";
}

int UsageFailure(const CLI::App& app, const CLI::ParseError& error,
                 const std::vector<std::string>& words) {
  const auto chosen = app.get_subcommands();
  if (chosen.empty()) {
    if (words.empty()) return Fail(UsageError("no verb; see halftone --help"));
    return Fail(UsageError("no verb or flag is called \"", words[0], "\"",
                           NearestHint(words[0], VerbNames(app)),
                           " (see halftone --help)"));
  }
  const std::string verb = chosen[0]->get_name();
  const std::vector<std::string> below = VerbNames(*chosen[0]);
  if (!below.empty() && words.size() > 1 && words[1][0] != '-' &&
      std::find(below.begin(), below.end(), words[1]) == below.end()) {
    return Fail(UsageError(verb, ": it has no \"", words[1], "\"",
                           NearestHint(words[1], below), " (see halftone ",
                           verb, " --help)"));
  }
  const std::string unknown = UnknownFlag(*chosen[0], words);
  // What follows a launched command's name is not launch's.
  if (!unknown.empty() && !chosen[0]->get_prefix_command()) {
    return Fail(UnknownFlagError(*chosen[0], unknown));
  }
  return Fail(UsageError(verb, ": ", error.what(), " (see halftone ", verb,
                         " --help)"));
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

int Main(int argc, char** argv) {
  LetThreadsSleep(argv);
  CLI::App app(
      "halftone: compile program graphs with mixed precision, train them on "
      "many ranks,\nexplain every cast.",
      "halftone");
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  Outcome outcome;
  for (auto add :
       {AddCompile, AddRun, AddLaunch, AddEval, AddInspect, AddExplain, AddDiff,
        AddExport, AddPlan, AddTune, AddCkpt, AddOps, AddZoo, AddVersion}) {
    add(app, &outcome);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return UsageFailure(app, error, {argv + 1, argv + argc});
  }
  if (!outcome.status.ok()) return Fail(outcome.status);
  return outcome.exit_code;
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
