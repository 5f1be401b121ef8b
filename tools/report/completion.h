// What a shell offers behind a half-typed command line, and the manual: both
// from what the verbs say of themselves.
#ifndef HALFTONE_TOOLS_REPORT_COMPLETION_H_
#define HALFTONE_TOOLS_REPORT_COMPLETION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tools/common/command_line.h"

namespace halftone {
namespace tools {

struct Candidate {
  std::string word;
  std::string doc;  // the first line of what it is; may be empty
};

// What may stand for the last of `words`, which are those behind "halftone";
// none: a file's name, or nothing that is known. Verbs, flags, and the words
// that a flag or a verb's own word takes: a field's, targets, ops, models of
// the zoo, codes, paths of fields for --set.
std::vector<Candidate> CandidatesFor(const VerbDoc& program,
                                     absl::Span<const std::string> words);

// The words that a flag takes, as its help lists them: "O0 | O1; default: O0",
// "of BERT: classification (default) | pretraining". None: it lists none.
std::vector<std::string> ListedWords(const std::string& help);

// The script that makes `shell` (bash, zsh, fish) ask `halftone completion`.
// Errors (kUsage): another shell.
absl::StatusOr<std::string> CompletionScript(const std::string& shell);

// The manual, halftone(1), for man: all verbs with their flags and examples,
// and the exit codes.
std::string ManPage(const VerbDoc& program);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_COMPLETION_H_
