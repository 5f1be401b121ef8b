// For tests that run programs: processes with their output in files.
#ifndef HALFTONE_TESTS_SUPPORT_CHILD_H_
#define HALFTONE_TESTS_SUPPORT_CHILD_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace halftone {

struct Child {
  pid_t pid = -1;
  std::string out, err;  // files
};

struct Result {
  int status = 0;  // of waitpid
  std::string out, err;
  int64_t peak_bytes = 0;  // of memory in use at once
  // 128 + n for signal n.
  int exit_code() const;
};

// Starts command[0] (a path) with exactly these variables and TMPDIR. `name`
// is for its output files.
Child Start(const std::string& name, const std::vector<std::string>& command,
            const std::map<std::string, std::string>& env);
Result Wait(const Child& child);
// Both; with the variables of this process.
Result RunProgram(const std::vector<std::string>& command);
std::map<std::string, std::string> OwnVariables();

// kill(2) of one process: to that of a program that could not be started, -1,
// or of one that was not found, 0, a signal would go to all or to ourselves.
void Signal(pid_t pid, int signal);

std::string ReadAll(const std::string& path);

}  // namespace halftone

#endif  // HALFTONE_TESTS_SUPPORT_CHILD_H_
