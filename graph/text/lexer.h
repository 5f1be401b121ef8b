// Splits the text form into tokens.
#ifndef HALFTONE_GRAPH_TEXT_LEXER_H_
#define HALFTONE_GRAPH_TEXT_LEXER_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace halftone {
namespace text {

enum class TokenKind : uint8_t {
  kWord,     // names, keywords, numbers
  kString,   // "...": `text` is what stands between the quotes, escaped
  kPunct,    // one of : = , ( ) [ ] { } *
  kArrow,    // ->
  kFrom,     // <-
  kNewline,  // the end of a line that is not inside ( ) or [ ]
  kEnd,
  kError,  // a byte or string that begins no token
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  absl::string_view text;
  int32_t line = 1;
  int32_t column = 1;  // in bytes

  bool Is(char punct) const {
    return kind == TokenKind::kPunct && text[0] == punct;
  }
  bool IsWord(absl::string_view word) const {
    return kind == TokenKind::kWord && text == word;
  }
};
// For "found ...": `"x"`, "the end of the line", "the end of the file".
std::string Describe(const Token& token);

// '#' starts a comment that ends with its line. Empty lines give no tokens.
class Lexer {
 public:
  explicit Lexer(absl::string_view text) : text_(text) {}
  Token Next();

 private:
  void SkipBlanks();
  Token Make(TokenKind kind, size_t size);
  Token MakeString();

  absl::string_view text_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  int32_t line_ = 1;
  int depth_ = 0;  // of ( ) and [ ]
  bool at_line_start_ = true;
};

}  // namespace text
}  // namespace halftone

#endif  // HALFTONE_GRAPH_TEXT_LEXER_H_
