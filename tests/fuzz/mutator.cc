#include "tests/fuzz/mutator.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace halftone {
namespace {

constexpr const char* kNumbers[] = {"0",
                                    "-1",
                                    "1",
                                    "-2147483649",
                                    "4294967296",
                                    "9223372036854775807",
                                    "-9223372036854775808",
                                    "99999999999999999999999",
                                    "1e308",
                                    "-1e-320",
                                    "nan",
                                    "inf",
                                    "0x10",
                                    "1.5"};
constexpr const char* kWords[] = {
    "\"\"",  "{",    "}",  "[",    "]",    "(",      ")",   "->",   "<-",
    "=",     "\"",   "\\", "#",    "\n",   "body {", "f16", "bool", "u8[B*B]",
    "f32[]", "relu", "B",  "true", "feed", "fusion", "\xff"};

bool IsWordChar(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-';
}

}  // namespace

absl::Span<const char* const> ExtremeNumbers() { return kNumbers; }

void Mutator::EditBytes(std::string& content) {
  const size_t at = Below(content.size());
  const size_t size = std::min(content.size() - at, 1 + Below(40));
  switch (Below(6)) {
    case 0:
      if (!content.empty()) content[at] ^= static_cast<char>(1 << Below(8));
      break;
    case 1:
      if (!content.empty()) content[at] = static_cast<char>(Below(256));
      break;
    case 2:
      content.insert(at, 1 + Below(4), static_cast<char>(Below(256)));
      break;
    case 3:
      content.erase(at, size);
      break;
    case 4:  // a copy of one part elsewhere
      content.insert(Below(content.size()), content.substr(at, size));
      break;
    case 5:
      content.resize(at);
      break;
  }
}

void Mutator::EditLines(std::string& content) {
  std::vector<std::string> lines = absl::StrSplit(content, '\n');
  const size_t a = Below(lines.size()), b = Below(lines.size());
  switch (Below(3)) {
    case 0:
      std::swap(lines[a], lines[b]);
      break;
    case 1:
      lines.erase(lines.begin() + a);
      break;
    case 2:
      lines.insert(lines.begin() + b, std::string(lines[a]));
      break;
  }
  content = absl::StrJoin(lines, "\n");
}

// Replaces one word by another of the file, a number or a piece of syntax.
void Mutator::EditWord(std::string& content) {
  std::vector<std::pair<size_t, size_t>> words;  // begin, size
  for (size_t i = 0; i < content.size();) {
    size_t end = i;
    while (end < content.size() && IsWordChar(content[end])) ++end;
    if (end > i) words.emplace_back(i, end - i);
    i = end + 1;
  }
  if (words.empty()) return;
  const auto [begin, size] = words[Below(words.size())];
  const auto [other, other_size] = words[Below(words.size())];
  std::string with;
  switch (Below(3)) {
    case 0:
      with = content.substr(other, other_size);
      break;
    case 1:
      with = kNumbers[Below(std::size(kNumbers))];
      break;
    case 2:
      with = kWords[Below(std::size(kWords))];
      break;
  }
  content.replace(begin, size, with);
}

std::string Mutator::Mutate(absl::string_view content, bool text) {
  std::string result(content);
  for (size_t edits = 1 + Below(4); edits > 0; --edits) {
    const size_t kind = text ? Below(4) : 0;
    if (kind == 0) {
      EditBytes(result);
    } else if (kind == 1) {
      EditLines(result);
    } else {
      EditWord(result);
    }
  }
  return result;
}

}  // namespace halftone
