#include "tools/report/words.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace halftone {
namespace tools {

namespace {

bool BeginsCharacter(char c) { return (c & 0xc0) != 0x80; }

// Bytes of the first `columns` characters.
size_t BytesOf(absl::string_view text, int columns) {
  size_t bytes = 0;
  while (bytes < text.size()) {
    if (BeginsCharacter(text[bytes]) && columns-- == 0) break;
    ++bytes;
  }
  return bytes;
}

}  // namespace

int WidthOf(absl::string_view text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), BeginsCharacter));
}

std::vector<std::string> Wrapped(absl::string_view text, int columns) {
  std::vector<std::string> lines;
  while (columns > 0 && WidthOf(text) > columns) {
    const size_t most = BytesOf(text, columns);
    // The blank behind a full line is a place to break, too.
    size_t end = text.substr(0, most + 1).rfind(' ');
    if (end == absl::string_view::npos || end == 0) end = most;
    lines.emplace_back(absl::StripTrailingAsciiWhitespace(text.substr(0, end)));
    text = absl::StripLeadingAsciiWhitespace(text.substr(end));
  }
  if (lines.empty() || !text.empty()) lines.emplace_back(text);
  return lines;
}

std::string Hanging(const std::string& label, const std::string& text,
                    int indent, int columns) {
  const int width = columns > indent ? std::max(columns - indent, 20) : 0;
  std::string head = label;
  if (head.empty() || head.back() != ' ') head.push_back(' ');
  head.resize(std::max<size_t>(indent, head.size()), ' ');
  return absl::StrCat(
      head,
      absl::StrJoin(Wrapped(text, width), "\n" + std::string(indent, ' ')),
      "\n");
}

}  // namespace tools
}  // namespace halftone
