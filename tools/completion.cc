// halftone completion: what shells ask, and the manual.
#include "tools/report/completion.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "tools/common/command_line.h"
#include "tools/verb.h"

namespace halftone {
namespace tools {
namespace {

struct CompletionFlags {
  std::vector<std::string> words;
  bool offer = false;
};

absl::StatusOr<std::string> Text(const CompletionFlags& flags,
                                 const VerbDoc& program) {
  std::string text;
  if (flags.offer) {
    for (const Candidate& candidate : CandidatesFor(program, flags.words)) {
      absl::StrAppend(&text, candidate.word, "\t", candidate.doc, "\n");
    }
    return text;
  }
  if (flags.words.size() != 1) {
    return UsageError("completion: expected one of bash, zsh, fish, man");
  }
  return flags.words[0] == "man" ? ManPage(program)
                                 : CompletionScript(flags.words[0]);
}

}  // namespace

void AddCompletion(Verb app, Outcome* outcome) {
  auto flags = std::make_shared<CompletionFlags>();
  Verb verb = app.AddVerb(
      "completion", "for shells and man",
      "examples:\n"
      "  halftone completion zsh > \"${fpath[1]}/_halftone\"\n"
      "  halftone completion fish | source\n"
      "  halftone completion man > halftone.1\n"
      "  source <(halftone completion bash)\n\n"
      "Writes the script with which a shell completes verbs, flags, and what\n"
      "they take; or the manual.");
  verb.AddOption("for", &flags->words, "bash | zsh | fish | man");
  verb.AddSwitch("--words", &flags->offer,
                 "what may stand for the last of the words behind --:\n"
                 "each with a tab and what it is");
  verb.SetRun([flags, app, outcome] {
    const absl::StatusOr<std::string> text = Text(*flags, app.Doc());
    outcome->status = text.status();
    if (text.ok()) Show(*text, stdout);
  });
}

}  // namespace tools
}  // namespace halftone
