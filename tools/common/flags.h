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

// The head of an app's --help: examples first.
void SetHelp(CLI::App& app, const std::string& help);

// "--ranks", ...: the long flags of a verb.
std::vector<std::string> FlagNames(const CLI::App& verb);
// An error (kUsage) that says so and names the nearest flag.
absl::Status UnknownFlagError(const CLI::App& verb, const std::string& flag);
// The verb that was typed, or the one below it (`ckpt ls`); null: none.
const CLI::App* ChosenVerb(const CLI::App& app);
// Errors (kUsage) with the nearest name. A first word that is none of the
// verbs, or a second one that is none of those below; with --help behind it,
// too.
absl::Status CheckVerb(const CLI::App& app,
                       const std::vector<std::string>& words);
// A word that looks like a flag and is none of the verb's.
absl::Status CheckFlags(const CLI::App& verb,
                        const std::vector<std::string>& words);

// "--max-restarts,-m" with "--max_restarts": other launchers' spelling.
std::string WithUnderscores(const std::string& names);
// "0,1,3". Errors (kUsage) name the flag.
absl::Status ParseNumbers(const char* flag, const std::string& text,
                          std::vector<int>* numbers);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_FLAGS_H_
