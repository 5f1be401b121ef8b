#include "graph/text/names.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"

namespace halftone {
namespace text {
namespace {

constexpr char kHex[] = "0123456789abcdef";

constexpr std::array<bool, 256> MakeIsWordChar() {
  std::array<bool, 256> is = {};
  for (int c = 0; c < 256; ++c) is[c] = IsWordChar(static_cast<char>(c));
  return is;
}
// A large program's text has millions of them.
constexpr std::array<bool, 256> kIsWordChar = MakeIsWordChar();

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

void AppendName(absl::string_view name, std::string* out) {
  const bool bare =
      !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
        return kIsWordChar[static_cast<unsigned char>(c)];
      });
  if (bare) {
    out->append(name.data(), name.size());
  } else {
    AppendQuoted(name, out);
  }
}

void AppendQuoted(absl::string_view value, std::string* out) {
  out->push_back('"');
  for (char c : value) {
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (c == '\n') {
      out->append("\\n");
    } else if (absl::ascii_iscntrl(c)) {
      const int byte = static_cast<unsigned char>(c);
      out->append({'\\', 'x', kHex[byte >> 4], kHex[byte & 15]});
    } else {
      out->push_back(c);
    }
  }
  out->push_back('"');
}

bool Unescape(absl::string_view content, std::string* out) {
  for (size_t i = 0; i < content.size(); ++i) {
    if (content[i] != '\\') {
      out->push_back(content[i]);
      continue;
    }
    if (++i == content.size()) return false;
    const char c = content[i];
    if (c == 'n') {
      out->push_back('\n');
    } else if (c == '"' || c == '\\') {
      out->push_back(c);
    } else if (c == 'x' && i + 2 < content.size() &&
               HexDigit(content[i + 1]) >= 0 && HexDigit(content[i + 2]) >= 0) {
      out->push_back(static_cast<char>(HexDigit(content[i + 1]) * 16 +
                                       HexDigit(content[i + 2])));
      i += 2;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace text
}  // namespace halftone
