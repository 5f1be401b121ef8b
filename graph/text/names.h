// How names and strings are spelled in the text form.
#ifndef HALFTONE_GRAPH_TEXT_NAMES_H_
#define HALFTONE_GRAPH_TEXT_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"

namespace halftone {
namespace text {

// Letters, digits and _ . / @ $ % + - : what a bare word is made of.
constexpr bool IsWordChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '/' ||
         c == '@' || c == '$' || c == '%' || c == '+' || c == '-';
}

// Appends `name` as a bare word (layer4/0/conv.w, @seed) or, where it is not
// one, in double quotes.
void AppendName(absl::string_view name, std::string* out);
// Appends `value` in double quotes; \ " and control bytes are escaped.
void AppendQuoted(absl::string_view value, std::string* out);

// Undoes AppendQuoted for the content between the quotes. False for an
// unknown escape.
bool Unescape(absl::string_view content, std::string* out);

}  // namespace text
}  // namespace halftone

#endif  // HALFTONE_GRAPH_TEXT_NAMES_H_
