// What a run shows: the report on stdout, progress and messages on stderr. On
// a terminal the progress line is rewritten in place; events stay.
#ifndef HALFTONE_RUNTIME_LOG_CONSOLE_H_
#define HALFTONE_RUNTIME_LOG_CONSOLE_H_

#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>

#include "absl/strings/string_view.h"

namespace halftone {
namespace runtime {

// Any thread may write; lines stay whole.
class Console {
 public:
  // Columns of the terminal that `err` ends on: its own, else what the
  // launcher says in HALFTONE_CONSOLE_COLUMNS; 0: no terminal.
  static Console Standard();
  Console(std::FILE* out, std::FILE* err, int columns);

  // Rewritten by the next line on a terminal; elsewhere an ordinary line.
  void Progress(absl::string_view line);
  // What others write begins on a line of its own.
  void EndProgress();
  // Leaves the progress line on screen and begins a new one; to stderr.
  void Message(absl::string_view line);
  void Report(absl::string_view line);  // to stdout
  bool is_terminal() const { return columns_ > 0; }
  // Room for a progress line that is rewritten; 0: there is no end to it.
  // That of the process may change its size.
  int room() const;
  // When the latest line was written; when the console was made, if none was.
  std::chrono::steady_clock::time_point last_line() const;

 private:
  void LeaveProgress();
  void Wrote() { last_line_ = std::chrono::steady_clock::now(); }

  std::FILE* out_;
  std::FILE* err_;
  int columns_;
  mutable std::mutex mutex_;
  bool progress_shown_ = false;
  std::chrono::steady_clock::time_point last_line_ =
      std::chrono::steady_clock::now();
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_LOG_CONSOLE_H_
