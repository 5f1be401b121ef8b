// Text in lines of a width.
#ifndef HALFTONE_GRAPH_BASE_WRAP_H_
#define HALFTONE_GRAPH_BASE_WRAP_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace halftone {

// Columns that UTF-8 text takes: its characters.
int WidthOf(absl::string_view text);

// The text in lines of at most `columns`, broken at blanks, and inside a word
// that is longer; 0 columns: one line. At least one line. `whole_words`: such a
// word has a longer line, so that it can be copied from a terminal.
std::vector<std::string> Wrapped(absl::string_view text, int columns,
                                 bool whole_words = false);

// "label" padded to `indent` (with a blank at its end), then the text; further
// lines are indented.
std::string Hanging(const std::string& label, const std::string& text,
                    int indent, int columns);

// Each line that is wider than `columns` (0: none is) goes on below, in whole
// words, where its text begins: behind a label with two blanks at its end, if
// there is one.
std::string FittedLines(const std::string& text, int columns);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_WRAP_H_
