// Small things about command lines that several verbs need.
#ifndef HALFTONE_TOOLS_COMMON_FLAGS_H_
#define HALFTONE_TOOLS_COMMON_FLAGS_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

namespace halftone {
namespace tools {

// Adds a verb: `summary` is its line in `halftone --help`, `help` (examples
// first) the head of its own.
CLI::App* AddVerb(CLI::App& app, const std::string& name,
                  const std::string& summary, const std::string& help);

// "--ranks", ...: the long flags of a verb.
std::vector<std::string> FlagNames(const CLI::App& verb);
// An error (kUsage) that says so and names the nearest flag.
absl::Status UnknownFlagError(const CLI::App& verb, const std::string& flag);
// "--max-restarts,-m" with "--max_restarts": other launchers' spelling.
std::string WithUnderscores(const std::string& names);
// "0,1,3". Errors (kUsage) name the flag.
absl::Status ParseNumbers(const char* flag, const std::string& text,
                          std::vector<int>* numbers);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_FLAGS_H_
