#include "graph/base/shell_word.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace halftone {

std::string ShellWord(absl::string_view word) {
  const auto plain = [](char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("_./@:=+-,%", c);
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) {
    return std::string(word);
  }
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

}  // namespace halftone
