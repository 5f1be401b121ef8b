#include "graph/io/source_lines.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace halftone {
namespace {

class Scanner {
 public:
  explicit Scanner(absl::string_view text) : text_(text) {}

  absl::flat_hash_map<std::string, std::vector<int>> Run() {
    while (at_ < text_.size()) Step();
    return std::move(lines_);
  }

 private:
  void Step();
  void SkipString(char quote);
  void Value() { lines_[field_].push_back(line_); }

  absl::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  int depth_ = 0;      // of { } and < >
  bool list_ = false;  // in `field: [ ... ]` of the outermost message
  std::string field_;  // of the outermost message, the last one met
  absl::flat_hash_map<std::string, std::vector<int>> lines_;
};

void Scanner::SkipString(char quote) {
  while (at_ < text_.size() && text_[at_] != quote) {
    at_ += text_[at_] == '\\' ? 2 : 1;
  }
  ++at_;
}

void Scanner::Step() {
  const char c = text_[at_++];
  if (c == '\n') {
    ++line_;
  } else if (c == '#') {
    at_ = std::min(text_.find('\n', at_), text_.size());
  } else if (c == '"' || c == '\'') {
    SkipString(c);
  } else if (c == '{' || c == '<') {
    if (depth_++ == 0 && list_) Value();
  } else if (c == '}' || c == '>') {
    --depth_;
  } else if (depth_ > 0) {
    return;
  } else if (c == '[' || c == ']') {
    // The list's elements count, not the field.
    list_ = c == '[';
    if (list_ && !lines_[field_].empty()) lines_[field_].pop_back();
  } else if (absl::ascii_isalpha(c) && !list_) {
    const size_t begin = at_ - 1;
    while (at_ < text_.size() &&
           (absl::ascii_isalnum(text_[at_]) || text_[at_] == '_')) {
      ++at_;
    }
    // A word after ':' is a value (an enumerator): harmless, it has no list.
    field_ = std::string(text_.substr(begin, at_ - begin));
    Value();
  }
}

}  // namespace

absl::flat_hash_map<std::string, std::vector<int>> TopLevelLines(
    absl::string_view text) {
  return Scanner(text).Run();
}

}  // namespace halftone
