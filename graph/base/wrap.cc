#include "graph/base/wrap.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace halftone {

namespace {

// A text has this many columns or more, however long its label is.
constexpr int kLeastWidth = 20;

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

// Where a line's text begins.
size_t TextOf(absl::string_view line, int columns) {
  const size_t begin = line.find_first_not_of(' ');
  if (begin == line.npos) return 0;
  const size_t gap = line.find("  ", begin);
  const size_t text = line.find_first_not_of(' ', gap);
  const size_t most = static_cast<size_t>(columns) * 2 / 3;
  return gap != line.npos && text <= most ? text : begin;
}

}  // namespace

int WidthOf(absl::string_view text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), BeginsCharacter));
}

std::vector<std::string> Wrapped(absl::string_view text, int columns,
                                 bool whole_words) {
  std::vector<std::string> lines;
  while (columns > 0 && WidthOf(text) > columns) {
    const size_t most = BytesOf(text, columns);
    // The blank behind a full line is a place to break, too.
    size_t end = text.substr(0, most + 1).rfind(' ');
    const bool breaks = end == absl::string_view::npos || end == 0;
    if (breaks) end = whole_words ? text.find(' ', 1) : most;
    if (end == absl::string_view::npos) break;
    lines.emplace_back(absl::StripTrailingAsciiWhitespace(text.substr(0, end)));
    text = absl::StripLeadingAsciiWhitespace(text.substr(end));
  }
  if (lines.empty() || !text.empty()) lines.emplace_back(text);
  return lines;
}

std::string Hanging(const std::string& label, const std::string& text,
                    int indent, int columns) {
  const int width =
      columns > indent ? std::max(columns - indent, kLeastWidth) : 0;
  std::string head = label;
  if (head.empty() || head.back() != ' ') head.push_back(' ');
  head.resize(std::max<size_t>(indent, head.size()), ' ');
  return absl::StrCat(head,
                      absl::StrJoin(Wrapped(text, width, /*whole_words=*/true),
                                    "\n" + std::string(indent, ' ')),
                      "\n");
}

std::string FittedLines(const std::string& text, int columns) {
  if (columns <= 0) return text;
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    lines.emplace_back(line);
    if (WidthOf(line) <= columns) continue;
    const size_t at = TextOf(line, columns);
    const int width = std::max(columns - static_cast<int>(at), kLeastWidth);
    lines.back() = absl::StrCat(line.substr(0, at),
                                absl::StrJoin(Wrapped(line.substr(at), width,
                                                      /*whole_words=*/true),
                                              "\n" + std::string(at, ' ')));
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace halftone
