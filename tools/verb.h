// The verbs of the `halftone` binary: one file each, flags and calls only.
// What they print is made in tools/report, what they share is in tools/common.
#ifndef HALFTONE_TOOLS_VERB_H_
#define HALFTONE_TOOLS_VERB_H_

#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

namespace halftone {
namespace tools {

// What a verb's callback leaves behind. An error's class gives the exit code;
// `exit_code` is for an OK verb that still reports something (diff: 3).
struct Outcome {
  absl::Status status;
  int exit_code = 0;
};

// Makes `app` the binary's: its help, its version, all verbs.
void AddVerbs(CLI::App& app, Outcome* outcome);

// Each adds its subcommand to `app`; its callback sets `*outcome`.
void AddCompile(CLI::App& app, Outcome* outcome);
void AddRun(CLI::App& app, Outcome* outcome);
void AddLaunch(CLI::App& app, Outcome* outcome);
void AddEval(CLI::App& app, Outcome* outcome);
void AddInspect(CLI::App& app, Outcome* outcome);
void AddExplain(CLI::App& app, Outcome* outcome);
void AddDiff(CLI::App& app, Outcome* outcome);
void AddExport(CLI::App& app, Outcome* outcome);
void AddPlan(CLI::App& app, Outcome* outcome);
void AddTune(CLI::App& app, Outcome* outcome);
void AddCkpt(CLI::App& app, Outcome* outcome);
void AddOps(CLI::App& app, Outcome* outcome);
void AddZoo(CLI::App& app, Outcome* outcome);
void AddOpt(CLI::App& app, Outcome* outcome);
void AddVersion(CLI::App& app, Outcome* outcome);

// What `version` and --version print, without the last line's end.
std::string VersionText();

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_VERB_H_
