// Text on its way to a terminal or a pipe: the edge at which names from
// models, files, data and peers lose what a terminal would obey, and at which
// reports get their colour.
#ifndef HALFTONE_GRAPH_BASE_DISPLAY_H_
#define HALFTONE_GRAPH_BASE_DISPLAY_H_

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace halftone {

// The text with nothing in it that moves a cursor, colours, or turns the order
// of characters around: control characters (C0 but newline and tab, DEL, C1),
// bidirectional and invisible format characters become \u001b, bytes that are
// no UTF-8 become \x9b. Inside a JSON string \u001b means the same character,
// so JSON stays the same JSON. All writes to a console pass through here.
std::string Printable(absl::string_view text);
// The same for a name inside a line: newlines and tabs, too.
std::string PrintableName(absl::string_view name);

// Whether `stream` (stdout or stderr) ends on a terminal that takes colours
// and the user did not forbid them: NO_COLOR, TERM=dumb. The stderr of a rank
// whose launcher sits on a terminal counts as one.
bool MayColor(std::FILE* stream);
// Columns of that terminal; 0: none.
int ColumnsOf(std::FILE* stream);

// Colours a report's words: "error" and "warning" at the start of a line, and
// dtypes wherever they stand alone (f16 and bf16 apart from f32). `text` has
// gone through Printable before.
std::string Highlighted(absl::string_view text);

// Writes Printable(text); what could not be written stands in ferror(stream).
// For what programs read (JSON, program text).
void Show(absl::string_view text, std::FILE* stream);
// The same for people: highlighted where the stream may have colour.
void ShowReport(absl::string_view text, std::FILE* stream);

// A command begins: what the one before it wrote to stdout, or could not write,
// is forgotten.
void StartShowing();
// From here on what either is to write to stdout goes to stderr: stdout holds a
// file that was asked for (-o -), which a report would spoil.
void KeepStdoutForOutput();
// Whether either has written to stdout.
bool HasShownOnStdout();

// Opens 0, 1 and 2 where they are closed, so that no file of ours gets the
// number of a console. Writing to what was closed stays an error.
void OpenStandardStreams();
// Flushes stdout. Error (kModel) if anything that was written to it is lost.
absl::Status CheckStdout();

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_DISPLAY_H_
