// The numbers that a field takes: "(0, 1]", "[0, inf)".
#ifndef HALFTONE_GRAPH_STRATEGY_INTERVAL_H_
#define HALFTONE_GRAPH_STRATEGY_INTERVAL_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace halftone {

struct Interval {
  double low = 0, high = 0;
  bool has_low = false, has_high = false;  // whether the ends belong to it

  // NaN is in none.
  bool Has(double value) const;
  // "a finite number above 0", "a number from 0 to below 1"; `whole`: "a whole
  // number above 0".
  std::string Text(bool whole) const;
};

// Brackets, two numbers or inf, the low one first; none else.
std::optional<Interval> ParseInterval(absl::string_view text);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_STRATEGY_INTERVAL_H_
