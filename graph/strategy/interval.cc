#include "graph/strategy/interval.h"

#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "graph/base/text.h"

namespace halftone {

// Each comparison says what must hold, so that NaN fails.
bool Interval::Has(double value) const {
  return (has_low ? value >= low : value > low) &&
         (has_high ? value <= high : value < high);
}

std::string Interval::Text(bool whole) const {
  const auto end = [whole](double number) {
    return whole ? absl::StrFormat("%.0f", number) : ExactDouble(number);
  };
  const std::string from = end(low), to = end(high);
  if (std::isinf(high)) {
    const char* const kind = whole      ? "a whole number"
                             : has_high ? "a number"
                                        : "a finite number";
    return has_low ? absl::StrCat(kind, ", ", from, " or above")
                   : absl::StrCat(kind, " above ", from);
  }
  const char* const kind = whole ? "a whole number" : "a number";
  if (has_low) {
    return absl::StrCat(kind, " from ", from, " to ", has_high ? "" : "below ",
                        to);
  }
  return absl::StrCat(kind, " above ", from, " and ",
                      has_high ? "at most " : "below ", to);
}

std::optional<Interval> ParseInterval(absl::string_view text) {
  if (text.size() < 2) return std::nullopt;
  const char first = text.front(), last = text.back();
  if ((first != '(' && first != '[') || (last != ')' && last != ']')) {
    return std::nullopt;
  }
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(text.substr(1, text.size() - 2), absl::MaxSplits(", ", 1));
  Interval interval;
  if (!absl::SimpleAtod(ends.first, &interval.low) ||
      !absl::SimpleAtod(ends.second, &interval.high) ||
      !(interval.low < interval.high)) {
    return std::nullopt;
  }
  interval.has_low = first == '[';
  interval.has_high = last == ']';
  return interval;
}

}  // namespace halftone
