#include "runtime/log/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/numbers.h"

namespace halftone {
namespace runtime {
namespace {

// As runtime/launch sets it for rank 0, whose stderr is a pipe.
constexpr char kColumnsVariable[] = "HALFTONE_CONSOLE_COLUMNS";

int ColumnsOfStderr() {
  winsize size;
  if (isatty(STDERR_FILENO) != 0 &&
      ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0) {
    return size.ws_col > 0 ? size.ws_col : 80;
  }
  const char* text = std::getenv(kColumnsVariable);
  int columns = 0;
  return text != nullptr && absl::SimpleAtoi(text, &columns) ? columns : 0;
}

void PrintLine(std::FILE* file, absl::string_view line, const char* end) {
  std::fwrite(line.data(), 1, line.size(), file);
  std::fputs(end, file);
  std::fflush(file);
}

}  // namespace

Console Console::Standard() {
  return Console(stdout, stderr, ColumnsOfStderr());
}

Console::Console(std::FILE* out, std::FILE* err, int columns)
    : out_(out), err_(err), columns_(columns) {}

void Console::Progress(absl::string_view line) {
  if (!is_terminal()) return PrintLine(err_, line, "\n");
  // A line that wraps could not be rewritten.
  std::fputs("\r\033[K", err_);
  PrintLine(err_, line.substr(0, columns_ - 1), "");
  progress_shown_ = true;
}

void Console::LeaveProgress() {
  if (!progress_shown_) return;
  std::fputs("\n", err_);
  std::fflush(err_);
  progress_shown_ = false;
}

void Console::Message(absl::string_view line) {
  LeaveProgress();
  PrintLine(err_, line, "\n");
}

void Console::Report(absl::string_view line) {
  LeaveProgress();
  PrintLine(out_, line, "\n");
}

}  // namespace runtime
}  // namespace halftone
