#include "passes/options/byte_text.h"

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace halftone {
namespace passes {

std::optional<int64_t> BytesFromText(absl::string_view text) {
  size_t digits = 0;
  while (digits < text.size() &&
         (absl::ascii_isdigit(text[digits]) || text[digits] == '.')) {
    ++digits;
  }
  const std::string unit =
      absl::AsciiStrToLower(absl::StripAsciiWhitespace(text.substr(digits)));
  constexpr double kKiB = 1024;
  constexpr std::pair<absl::string_view, double> kUnits[] = {
      {"", 1},
      {"b", 1},
      {"kb", 1e3},
      {"kib", kKiB},
      {"k", kKiB},
      {"mb", 1e6},
      {"mib", kKiB * kKiB},
      {"m", kKiB * kKiB},
      {"gb", 1e9},
      {"gib", kKiB * kKiB * kKiB},
      {"g", kKiB * kKiB * kKiB}};
  double value = 0;
  if (!absl::SimpleAtod(text.substr(0, digits), &value)) return std::nullopt;
  for (const auto& [name, factor] : kUnits) {
    const double bytes = value * factor;
    if (name != unit || bytes < 1 || bytes >= 9e18) continue;
    return static_cast<int64_t>(bytes);
  }
  return std::nullopt;
}

}  // namespace passes
}  // namespace halftone
