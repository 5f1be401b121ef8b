#include "runtime/log/console.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/display.h"

namespace halftone {
namespace runtime {
namespace {

constexpr char kYellow[] = "\033[33m", kRed[] = "\033[31m",
               kGreen[] = "\033[32m", kCyan[] = "\033[36m", kBold[] = "\033[1m",
               kPlain[] = "\033[0m";

// What a line begins with, and its colour. An event of a step is named behind
// the step's number.
struct Label {
  absl::string_view text;
  const char* color;
};
constexpr Label kLabels[] = {
    {"error", kRed}, {"warning", kYellow}, {"stop", kYellow},
    {"note", kCyan}, {"eval", kGreen},     {"done", kBold},
};
constexpr Label kStepLabels[] = {{"skipped:", kYellow}, {"warning:", kYellow}};

std::string Colored(absl::string_view line) {
  for (const Label& label : kLabels) {
    if (!absl::StartsWith(line, absl::StrCat(label.text, " "))) continue;
    return absl::StrCat(label.color, label.text, kPlain,
                        line.substr(label.text.size()));
  }
  for (const Label& label : kStepLabels) {
    const size_t at = line.find(absl::StrCat("  ", label.text, " "));
    if (!absl::StartsWith(line, "step ") || at == line.npos) continue;
    const size_t end = at + 2 + label.text.size();
    return absl::StrCat(label.color, line.substr(0, end), kPlain,
                        line.substr(end));
  }
  return std::string(line);
}

void PrintLine(std::FILE* file, absl::string_view line, const char* end) {
  const std::string shown = Printable(line);
  const std::string text =
      absl::StrCat(MayColor(file) ? Colored(shown) : shown, end);
  std::fwrite(text.data(), 1, text.size(), file);
  std::fflush(file);
}

}  // namespace

Console Console::Standard() {
  return Console(stdout, stderr, ColumnsOf(stderr));
}

Console::Console(std::FILE* out, std::FILE* err, int columns)
    : out_(out), err_(err), columns_(columns) {}

int Console::room() const {
  const int columns =
      is_terminal() && err_ == stderr ? ColumnsOf(stderr) : columns_;
  return columns > 0 ? columns - 1 : 0;
}

std::chrono::steady_clock::time_point Console::last_line() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return last_line_;
}

void Console::Progress(absl::string_view line) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Wrote();
  if (!is_terminal()) return PrintLine(err_, line, "\n");
  // A line that wraps could not be rewritten.
  std::fputs("\r\033[K", err_);
  PrintLine(err_, PrintableName(line).substr(0, room()), "");
  progress_shown_ = true;
}

void Console::LeaveProgress() {
  Wrote();
  if (!progress_shown_) return;
  std::fputs("\n", err_);
  std::fflush(err_);
  progress_shown_ = false;
}

void Console::EndProgress() {
  const std::lock_guard<std::mutex> lock(mutex_);
  LeaveProgress();
}

void Console::Message(absl::string_view line) {
  const std::lock_guard<std::mutex> lock(mutex_);
  LeaveProgress();
  PrintLine(err_, line, "\n");
}

void Console::Report(absl::string_view line) {
  const std::lock_guard<std::mutex> lock(mutex_);
  LeaveProgress();
  PrintLine(out_, line, "\n");
}

}  // namespace runtime
}  // namespace halftone
