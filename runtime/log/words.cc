#include "runtime/log/words.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/base/text.h"

namespace halftone {
namespace runtime {

std::string Count(int64_t n, absl::string_view noun) {
  const absl::string_view plural = absl::EndsWith(noun, "tch") ? "es" : "s";
  return absl::StrCat(WithCommas(n), " ", noun, n == 1 ? "" : plural);
}

std::string ThreeDigits(double value) {
  if (std::isnan(value)) return "nan";
  const double size = std::fabs(value);
  if (size >= 999.5 && size < 1e7) return absl::StrFormat("%.0f", value);
  return absl::StrFormat("%.3g", value);
}

std::string Percent(double part, double whole) {
  return absl::StrFormat("%.1f %%", 100 * part / whole);
}

std::string Duration(double seconds) {
  if (seconds < 9.95) return absl::StrFormat("%.1f s", seconds);
  if (seconds < 90) return absl::StrFormat("%.0f s", seconds);
  const auto minutes = static_cast<int64_t>(seconds / 60 + 0.5);
  if (minutes < 90) return absl::StrCat(minutes, " min");
  return absl::StrCat(minutes / 60, " h ", minutes % 60, " min");
}

std::string JoinFew(absl::Span<const std::string> words, size_t most,
                    absl::string_view separator) {
  const std::string first = absl::StrJoin(words.subspan(0, most), separator);
  if (words.size() <= most) return first;
  return absl::StrCat(first, separator, "and ", words.size() - most, " more");
}

// The method of largest remainders.
std::vector<int64_t> Apportion(int64_t whole, absl::Span<const double> parts) {
  std::vector<int64_t> shares(parts.size());
  double sum = 0;
  for (const double part : parts) sum += std::max(part, 0.0);
  if (!(sum > 0) || !std::isfinite(sum)) return shares;
  std::vector<double> rest(parts.size());
  int64_t left = whole;
  for (size_t i = 0; i < parts.size(); ++i) {
    const double share =
        static_cast<double>(whole) * (std::max(parts[i], 0.0) / sum);
    shares[i] = static_cast<int64_t>(share);
    rest[i] = share - static_cast<double>(shares[i]);
    left -= shares[i];
  }
  std::vector<size_t> order(parts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return rest[a] > rest[b]; });
  for (size_t i = 0; left > 0; ++i, --left) ++shares[order[i % order.size()]];
  return shares;
}

}  // namespace runtime
}  // namespace halftone
