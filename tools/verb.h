// The verbs of the `halftone` binary: one file each, flags and calls only.
// What they print is made in tools/report, what they share is in tools/common.
#ifndef HALFTONE_TOOLS_VERB_H_
#define HALFTONE_TOOLS_VERB_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace halftone {
namespace tools {

class Verb;  // tools/common/command_line.h

// What a verb's callback leaves behind. An error's class gives the exit code;
// `exit_code` is for an OK verb that still reports something (diff: 3).
struct Outcome {
  absl::Status status;
  int exit_code = 0;
};

// Makes `app` the binary's: its help, its version, all verbs; of one that is
// called by its name, that one alone: the flags of all others take as long as
// a small model's passes. `completion` is about all of them.
void AddVerbs(Verb app, Outcome* outcome, absl::string_view called = "");

// Each adds its subcommand to `app`; its callback sets `*outcome`.
void AddCompile(Verb app, Outcome* outcome);
void AddRun(Verb app, Outcome* outcome);
void AddLaunch(Verb app, Outcome* outcome);
void AddEval(Verb app, Outcome* outcome);
void AddPredict(Verb app, Outcome* outcome);
void AddInspect(Verb app, Outcome* outcome);
void AddExplain(Verb app, Outcome* outcome);
void AddDiff(Verb app, Outcome* outcome);
void AddLint(Verb app, Outcome* outcome);
void AddReport(Verb app, Outcome* outcome);
void AddCompare(Verb app, Outcome* outcome);
void AddReplay(Verb app, Outcome* outcome);
void AddReduce(Verb app, Outcome* outcome);
void AddExport(Verb app, Outcome* outcome);
void AddImport(Verb app, Outcome* outcome);
void AddPlan(Verb app, Outcome* outcome);
void AddTune(Verb app, Outcome* outcome);
void AddSearch(Verb app, Outcome* outcome);
void AddBisect(Verb app, Outcome* outcome);
void AddCkpt(Verb app, Outcome* outcome);
void AddData(Verb app, Outcome* outcome);
void AddOps(Verb app, Outcome* outcome);
void AddZoo(Verb app, Outcome* outcome);
void AddOpt(Verb app, Outcome* outcome);
void AddDoctor(Verb app, Outcome* outcome);
void AddCompletion(Verb app, Outcome* outcome);
void AddVersion(Verb app, Outcome* outcome);

// What `version` and --version print, without the last line's end.
std::string VersionText();

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_VERB_H_
