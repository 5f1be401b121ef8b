// What a run shows: the report on stdout, progress and messages on stderr. On
// a terminal the progress line is rewritten in place; events stay.
#ifndef HALFTONE_RUNTIME_LOG_CONSOLE_H_
#define HALFTONE_RUNTIME_LOG_CONSOLE_H_

#include <cstdio>
#include <string>

#include "absl/strings/string_view.h"

namespace halftone {
namespace runtime {

class Console {
 public:
  // Columns of the terminal that `err` ends on: its own, else what the
  // launcher says in HALFTONE_CONSOLE_COLUMNS; 0: no terminal.
  static Console Standard();
  Console(std::FILE* out, std::FILE* err, int columns);

  // Rewritten by the next line on a terminal; elsewhere an ordinary line.
  void Progress(absl::string_view line);
  // Leaves the progress line on screen and begins a new one; to stderr.
  void Message(absl::string_view line);
  void Report(absl::string_view line);  // to stdout
  bool is_terminal() const { return columns_ > 0; }

 private:
  void LeaveProgress();

  std::FILE* out_;
  std::FILE* err_;
  int columns_;
  bool progress_shown_ = false;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_LOG_CONSOLE_H_
