#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "graph/io/compiled_model.h"
#include "tools/report/completion.h"

namespace halftone {
namespace tools {
namespace {

// Text that roff prints as it is: no macros, escapes or typographic quotes.
std::string Roff(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (std::string& line : lines) {
    line = absl::StrReplaceAll(
        line, {{"\\", "\\e"}, {"-", "\\-"}, {"'", "\\(aq"}, {"`", "\\(ga"}});
    if (absl::StartsWith(line, ".")) line = absl::StrCat("\\&", line);
  }
  return absl::StrJoin(lines, "\n");
}

// Lines that are kept as they are.
std::string Example(const std::string& text) {
  return absl::StrCat(".nf\n", Roff(text), "\n.fi\n");
}

std::string FlagsText(const VerbDoc& verb) {
  std::string text;
  for (const FlagDoc& flag : verb.flags) {
    if (flag.shown() == "--help") continue;
    const std::string names =
        flag.names.empty() ? flag.word : absl::StrJoin(flag.names, ", ");
    absl::StrAppend(&text, ".TP\n\\fB", Roff(names), "\\fR\n",
                    Roff(flag.help.empty() ? "(no value)" : flag.help), "\n");
  }
  return text;
}

// `above`: the names before the verb's own.
std::string VerbText(const VerbDoc& verb, const std::string& above) {
  const std::string name = absl::StrCat(above, " ", verb.name);
  std::string text = absl::StrCat(".SS ", Roff(name), "\n", Roff(verb.summary),
                                  ".\n.PP\n", Example(verb.help));
  absl::StrAppend(&text, FlagsText(verb));
  for (const VerbDoc& below : verb.verbs) text += VerbText(below, name);
  return text;
}

}  // namespace

std::string ManPage(const VerbDoc& program) {
  std::string text = absl::StrCat(
      ".TH HALFTONE 1 \"\" \"", kProducer, "\" \"User Commands\"\n",
      ".SH NAME\nhalftone \\- mixed\\-precision data\\-parallel training from "
      "program graphs\n",
      ".SH SYNOPSIS\n\\fBhalftone\\fR \\fIVERB\\fR [\\fIWORD\\fR ...] "
      "[\\fIFLAG\\fR ...]\n",
      ".SH DESCRIPTION\n", Example(program.help), ".SH VERBS\n");
  for (const VerbDoc& verb : program.verbs) text += VerbText(verb, "halftone");
  absl::StrAppend(&text, ".SH EXIT STATUS\n");
  for (const ExitCodeDoc& exit : ExitCodeDocs()) {
    absl::StrAppend(&text, ".TP\n\\fB", static_cast<int>(exit.code), "\\fR\n",
                    Roff(std::string(exit.text)), "\n");
  }
  absl::StrAppend(&text,
                  ".TP\n\\fB128+n\\fR\nended by signal n\n"
                  ".SH ENVIRONMENT\n.TP\n\\fBNO_COLOR\\fR\n"
                  "no colour, whatever stdout is\n");
  return text;
}

}  // namespace tools
}  // namespace halftone
