#include "graph/verify/limits.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace halftone {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 50;

// The length of the UTF-8 sequence that `text` begins with; 0: none.
size_t SequenceLength(absl::string_view text) {
  const auto byte = [&text](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, beyond U+10FFFF.
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f) ||
      (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f)) {
    return 0;
  }
  return length;
}

bool IsPlain(char c) { return c >= 0x20 && c < 0x7f; }

}  // namespace

std::string BadDims(const TensorType& type) {
  if (type.rank() > kMaxRank) {
    return absl::StrCat("it has more than ", kMaxRank, " dims");
  }
  int64_t elements = 1;
  for (const Dim& dim : type.dims) {
    const int64_t n = dim.coefficient();
    if (n < 0) return "a dim is below 0";
    if (n > 0 && elements > kMaxElements / n) {
      return "it has more than 2^50 elements";
    }
    elements *= n > 0 ? n : 1;
  }
  return "";
}

std::string BadName(absl::string_view name) {
  if (name.empty()) return "is empty";
  if (name.size() > kMaxNameBytes) {
    return absl::StrCat("is longer than ", kMaxNameBytes, " bytes");
  }
  if (std::all_of(name.begin(), name.end(), IsPlain)) return "";
  while (!name.empty()) {
    const unsigned char c = static_cast<unsigned char>(name[0]);
    if (c < 0x20 || c == 0x7f) return "has control characters";
    const size_t length = SequenceLength(name);
    if (length == 0) return "is not UTF-8";
    name.remove_prefix(length);
  }
  return "";
}

}  // namespace halftone
