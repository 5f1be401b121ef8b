#include "graph/base/display.h"

#include <fcntl.h>
#include <stdio_ext.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/error.h"

namespace halftone {
namespace {

// As runtime/launch sets it for rank 0, whose stderr is a pipe.
constexpr char kColumnsVariable[] = "HALFTONE_CONSOLE_COLUMNS";

constexpr char kRed[] = "\033[1;31m", kYellow[] = "\033[33m";
constexpr char kGreen[] = "\033[32m", kCyan[] = "\033[36m";
constexpr char kPlain[] = "\033[0m";

// Of the last write to stdout that failed.
std::atomic<int> stdout_errno{0};
std::atomic<bool> shown_on_stdout = false;
std::atomic<bool> stdout_is_output = false;

// Bytes of the character that `text` begins with, and its code point; 0: it
// begins with no UTF-8 (overlong and surrogates included).
int DecodeFirst(absl::string_view text, uint32_t* point) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  *point = lead;
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  *point = lead & (0xff >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    *point = *point << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = *point >= 0xd800 && *point <= 0xdfff;
  return *point < kLeast[length] || *point > 0x10ffff || surrogate ? 0 : length;
}

// Characters that show nothing of their own but change what is shown: Unicode's
// categories Cc and Cf, the line separators, and the fillers that look empty.
bool IsHidden(uint32_t c) {
  constexpr struct {
    uint32_t first, last;
  } kRanges[] = {{0x00, 0x1f},       {0x7f, 0x9f},       {0xad, 0xad},
                 {0x600, 0x605},     {0x61c, 0x61c},     {0x6dd, 0x6dd},
                 {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},
                 {0x115f, 0x1160},   {0x180e, 0x180e},   {0x200b, 0x200f},
                 {0x2028, 0x202e},   {0x2060, 0x206f},   {0x3164, 0x3164},
                 {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff9, 0xfffb},
                 {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1345f},
                 {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};
  for (const auto& range : kRanges) {
    if (c >= range.first && c <= range.last) return true;
  }
  return false;
}

void AppendEscaped(uint32_t c, std::string* out) {
  if (c < 0x10000) {
    absl::StrAppendFormat(out, "\\u%04x", c);
    return;
  }
  c -= 0x10000;  // as JSON spells it
  absl::StrAppendFormat(out, "\\u%04x\\u%04x", 0xd800 + (c >> 10),
                        0xdc00 + (c & 0x3ff));
}

std::string Escape(absl::string_view text, absl::string_view allowed) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    uint32_t point = 0;
    const int length = DecodeFirst(text, &point);
    if (length == 0) {
      absl::StrAppendFormat(&out, "\\x%02x", static_cast<uint8_t>(text[0]));
    } else if (IsHidden(point) &&
               (length > 1 || !absl::StrContains(allowed, text[0]))) {
      AppendEscaped(point, &out);
    } else {
      out.append(text.data(), length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

bool IsWord(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '/' || c == '@';
}

const char* ColorOfDType(absl::string_view word) {
  if (word == "f16" || word == "bf16") return kGreen;
  return word == "f32" ? kCyan : nullptr;
}

// Of the word that begins a line.
const char* ColorOfLabel(absl::string_view word) {
  if (word == "error") return kRed;
  for (const char* warning : {"warning", "note"}) {
    if (word == warning) return kYellow;
  }
  return nullptr;
}

void AppendColored(absl::string_view word, const char* color,
                   std::string* out) {
  if (color == nullptr) {
    absl::StrAppend(out, word);
  } else {
    absl::StrAppend(out, color, word, kPlain);
  }
}

void OpenOnNull(int fd) {
  if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) return;
  // The lowest free number is this one. The wrong way round, so that who reads
  // or writes gets an error instead of silence.
  const int opened = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
  if (opened > 2) close(opened);
}

void Write(absl::string_view shown, std::FILE* stream) {
  if (stream == stdout && stdout_is_output) stream = stderr;
  if (stream == stdout && !shown.empty()) shown_on_stdout = true;
  if (std::fwrite(shown.data(), 1, shown.size(), stream) < shown.size() &&
      stream == stdout) {
    stdout_errno = errno;
  }
}

}  // namespace

void StartShowing() {
  std::fflush(stdout);
  if (std::ferror(stdout) != 0) __fpurge(stdout);
  std::clearerr(stdout);
  stdout_errno = 0;
  shown_on_stdout = false;
  stdout_is_output = false;
}

void KeepStdoutForOutput() { stdout_is_output = true; }

bool HasShownOnStdout() { return shown_on_stdout; }

std::string Printable(absl::string_view text) { return Escape(text, "\n\t"); }
std::string PrintableName(absl::string_view name) { return Escape(name, ""); }

int ColumnsOf(std::FILE* stream) {
  winsize size = {};
  const int fd = fileno(stream);
  if (isatty(fd) != 0) {
    const bool known = ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col : 80;
  }
  const char* text = std::getenv(kColumnsVariable);
  int columns = 0;
  return stream == stderr && text != nullptr && absl::SimpleAtoi(text, &columns)
             ? columns
             : 0;
}

bool MayColor(std::FILE* stream) {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && no_color[0] != '\0') return false;
  const char* term = std::getenv("TERM");
  if (term != nullptr && std::strcmp(term, "dumb") == 0) return false;
  return ColumnsOf(stream) > 0;
}

std::string Highlighted(absl::string_view text) {
  std::string out;
  bool at_start = true;  // only blanks since the line began
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    while (end < text.size() && IsWord(text[end])) ++end;
    if (end == begin) {
      at_start = text[begin] == '\n' || (at_start && text[begin] == ' ');
      out.push_back(text[begin++]);
      continue;
    }
    const absl::string_view word = text.substr(begin, end - begin);
    const char* label = at_start ? ColorOfLabel(word) : nullptr;
    AppendColored(word, label != nullptr ? label : ColorOfDType(word), &out);
    at_start = false;
    begin = end;
  }
  return out;
}

void Show(absl::string_view text, std::FILE* stream) {
  Write(Printable(text), stream);
}

void ShowReport(absl::string_view text, std::FILE* stream) {
  const std::string shown = Printable(text);
  Write(MayColor(stream) ? Highlighted(shown) : shown, stream);
}

void OpenStandardStreams() {
  for (int fd = 0; fd <= 2; ++fd) OpenOnNull(fd);
}

absl::Status CheckStdout() {
  if (std::fflush(stdout) != 0) stdout_errno = errno;
  if (std::ferror(stdout) == 0) return absl::OkStatus();
  const int cause = stdout_errno;
  return ModelError("stdout cannot be written", cause != 0 ? ": " : "",
                    cause != 0 ? std::strerror(cause) : "",
                    "; what was to be shown is lost");
}

}  // namespace halftone
