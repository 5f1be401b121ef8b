// Lists of words in reports.
#ifndef HALFTONE_TOOLS_REPORT_WORDS_H_
#define HALFTONE_TOOLS_REPORT_WORDS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace halftone {
namespace tools {

// Columns that UTF-8 text takes: its characters.
int WidthOf(absl::string_view text);

// The text in lines of at most `columns`, broken at blanks, and inside a word
// that is longer; 0 columns: one line. At least one line.
std::vector<std::string> Wrapped(absl::string_view text, int columns);

// "label" padded to `indent` (with a blank at its end), then the text; further
// lines are indented.
std::string Hanging(const std::string& label, const std::string& text,
                    int indent, int columns);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_WORDS_H_
