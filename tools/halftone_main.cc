// The `halftone` binary: parses the verb, runs it, turns its status into an
// exit code and an error line on stderr.
#include <cstdio>
#include <string>
#include <vector>

#include "graph/base/error.h"
#include "graph/base/text.h"
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

// The flags of the verb that was typed, for "did you mean".
std::vector<std::string> FlagNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands()) {
    for (const CLI::Option* option : verb->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        names.push_back("--" + name);
      }
    }
  }
  return names;
}

int UsageFailure(const CLI::App& app, const CLI::ParseError& error, int argc,
                 char** argv) {
  std::string message = error.what();
  std::string hint;
  for (int i = 1; i < argc && hint.empty(); ++i) {
    const std::string word = argv[i];
    if (message.find(word) == std::string::npos) continue;
    hint = word[0] == '-' ? NearestHint(word, FlagNames(app))
                          : NearestHint(word, VerbNames(app));
  }
  const auto chosen = app.get_subcommands();
  const std::string help =
      chosen.empty() ? "halftone --help"
                     : "halftone " + chosen[0]->get_name() + " --help";
  return Fail(UsageError(message, hint, " (see ", help, ")"));
}

int Main(int argc, char** argv) {
  CLI::App app(
      "halftone: compile program graphs with mixed precision, train them on "
      "many ranks,\nexplain every cast.",
      "halftone");
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  Outcome outcome;
  for (auto add : {AddCompile, AddRun, AddLaunch, AddEval, AddInspect}) {
    add(app, &outcome);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return UsageFailure(app, error, argc, argv);
  }
  if (!outcome.status.ok()) return Fail(outcome.status);
  return outcome.exit_code;
}

}  // namespace
}  // namespace tools
}  // namespace halftone

int main(int argc, char** argv) { return halftone::tools::Main(argc, argv); }
