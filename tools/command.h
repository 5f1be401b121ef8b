// What the `halftone` binary does, for programs that have it as a library
// (docs/builder.md).
#ifndef HALFTONE_TOOLS_COMMAND_H_
#define HALFTONE_TOOLS_COMMAND_H_

#include <string>
#include <vector>

namespace halftone {

// Runs a verb with its arguments, as they are typed behind "halftone", in this
// process: parses them, shows what it reports on stdout and stderr, and an
// error as one line on stderr. Returns the exit code (docs/cli.md). Not for
// several threads at once. `launch` starts this program's file again; `run
// --ranks` does not.
int RunCommand(std::vector<std::string> words);

}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMAND_H_
