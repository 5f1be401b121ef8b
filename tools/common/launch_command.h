// The command behind launch's own flags.
#ifndef HALFTONE_TOOLS_COMMON_LAUNCH_COMMAND_H_
#define HALFTONE_TOOLS_COMMON_LAUNCH_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/launch/launcher.h"
#include "tools/common/command_line.h"

namespace halftone {
namespace tools {

// The path of this binary.
absl::StatusOr<std::string> FindSelf();

// Whether `launch` makes ranks of the verb.
bool IsRankVerb(absl::string_view word);

// CLI11 hands what follows a verb's "--" to the program's own parser, which
// knows nothing of commands. Makes the first one of `launch` a word like
// others, which TakeCommand knows again.
void MarkLaunchedCommand(std::vector<std::string>* words);

// `launch run ...` is short for `launch -- halftone run ...` with this very
// binary; any other command is taken as it is. Errors are kUsage.
absl::Status TakeLaunchedCommand(Verb verb, runtime::LaunchOptions* options);

// The flags of other launchers that mean nothing here; what was given of them
// lands in `ignored`.
void AddIgnoredLaunchFlags(Verb verb, std::vector<std::string>* ignored);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_LAUNCH_COMMAND_H_
