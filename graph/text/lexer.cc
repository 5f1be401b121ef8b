#include "graph/text/lexer.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/text/names.h"

namespace halftone {
namespace text {

std::string Describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kNewline:
      return "the end of the line";
    case TokenKind::kEnd:
      return "the end of the file";
    case TokenKind::kError: {
      const char c = token.text[0];
      if (c == '"') return "a string that its line does not end";
      if (absl::ascii_isprint(c)) return absl::StrCat("'", token.text, "'");
      return absl::StrFormat("byte 0x%02x", static_cast<unsigned char>(c));
    }
    default: {
      std::string text;
      AppendQuoted(token.text.substr(0, 60), &text);
      return text;
    }
  }
}

// Skips blanks and comments, and line ends where they mean nothing.
void Lexer::SkipBlanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '\n' && (depth_ > 0 || at_line_start_)) {
      line_start_ = ++at_;
      ++line_;
    } else {
      return;
    }
  }
}

Token Lexer::Make(TokenKind kind, size_t size) {
  Token token{kind, text_.substr(at_, size), line_,
              static_cast<int32_t>(at_ - line_start_) + 1};
  at_ += token.text.size();
  at_line_start_ = false;
  return token;
}

Token Lexer::MakeString() {
  size_t end = at_ + 1;
  while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') {
    end += text_[end] == '\\' ? 2 : 1;
  }
  if (end >= text_.size() || text_[end] == '\n') {
    return Make(TokenKind::kError, 1);
  }
  Token token = Make(TokenKind::kString, end + 1 - at_);
  token.text = token.text.substr(1, token.text.size() - 2);
  return token;
}

Token Lexer::Next() {
  SkipBlanks();
  if (at_ >= text_.size()) return Make(TokenKind::kEnd, 0);
  const char c = text_[at_];
  const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
  if (c == '\n') {
    const Token token = Make(TokenKind::kNewline, 1);
    line_start_ = at_;
    ++line_;
    at_line_start_ = true;
    return token;
  }
  if (c == '-' && next == '>') return Make(TokenKind::kArrow, 2);
  if (c == '<' && next == '-') return Make(TokenKind::kFrom, 2);
  if (c == '"') return MakeString();
  if (IsWordChar(c)) {
    size_t end = at_ + 1;
    while (end < text_.size() && IsWordChar(text_[end]) &&
           text_.substr(end, 2) != "->") {
      ++end;
    }
    return Make(TokenKind::kWord, end - at_);
  }
  if (c == '(' || c == '[') ++depth_;
  if ((c == ')' || c == ']') && depth_ > 0) --depth_;
  const bool punct =
      absl::string_view(":=,()[]{}*").find(c) != absl::string_view::npos;
  return Make(punct ? TokenKind::kPunct : TokenKind::kError, 1);
}

}  // namespace text
}  // namespace halftone
