#include "graph/base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "xxhash.h"

namespace halftone {
namespace {

// Optimal string alignment distance: insert, delete, replace, swap.
int EditDistance(const std::string& a, const std::string& b) {
  const int n = a.size(), m = b.size();
  std::vector<std::vector<int>> d(n + 1, std::vector<int>(m + 1));
  for (int i = 0; i <= n; ++i) d[i][0] = i;
  for (int j = 0; j <= m; ++j) d[0][j] = j;
  for (int i = 1; i <= n; ++i) {
    for (int j = 1; j <= m; ++j) {
      const int change = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min(
          {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[n][m];
}

template <typename T>
std::string Exact(T value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, end.ptr);
}

}  // namespace

std::string Nearest(absl::string_view word,
                    absl::Span<const std::string> candidates) {
  const std::string key = absl::AsciiStrToLower(word.substr(0, 64));
  const std::string* best = nullptr;
  int best_distance =
      key.size() <= 2 ? 2 : std::max<int>(2, key.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::string other =
        absl::AsciiStrToLower(absl::string_view(candidate).substr(0, 64));
    int distance = EditDistance(key, other);
    if (key.size() >= 3 && absl::StartsWith(other, key)) {
      distance = std::min(distance, 1);
    }
    if (distance < best_distance) {
      best_distance = distance;
      best = &candidate;
    }
  }
  return best == nullptr ? std::string() : *best;
}

std::string NearestHint(absl::string_view word,
                        absl::Span<const std::string> candidates) {
  const std::string nearest = Nearest(word, candidates);
  return nearest.empty() ? "" : absl::StrCat("; nearest: ", nearest);
}

absl::string_view WithoutByteOrderMark(absl::string_view text) {
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");
  return text;
}

bool GlobMatch(absl::string_view pattern, absl::string_view text) {
  size_t p = 0, t = 0, star = absl::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t]) &&
        pattern[p] != '*') {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string WithCommas(int64_t value) {
  std::string digits = absl::StrCat(value);
  const int first = digits[0] == '-' ? 1 : 0;
  for (int i = static_cast<int>(digits.size()) - 3; i > first; i -= 3) {
    digits.insert(i, 1, ',');
  }
  return digits;
}

std::string HumanBytes(int64_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double value = bytes / 1024.0;
  int unit = 0;
  // 1000 KiB would need a fourth digit.
  while (value >= 999.5 && unit < 3) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.*f %s", value < 99.95 ? 1 : 0, value, kUnits[unit]);
}

std::string ExactFloat(float value) { return Exact(value); }
std::string ExactDouble(double value) { return Exact(value); }

uint64_t StableHash(absl::string_view bytes) {
  return XXH64(bytes.data(), bytes.size(), 0);
}

std::string Hex64(uint64_t value) { return absl::StrFormat("%016x", value); }

}  // namespace halftone
