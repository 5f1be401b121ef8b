#include "runtime/compare/error_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/base/text.h"

namespace halftone {
namespace runtime {
namespace {

struct Kind {
  const char* name;
  double (*of)(const ValueErrors& errors);
};

constexpr Kind kKinds[] = {
    {"error", [](const ValueErrors& e) { return e.relative_error(); }},
    {"max_abs", [](const ValueErrors& e) { return e.max_abs_error; }},
    {"max_rel", [](const ValueErrors& e) { return e.max_rel_error; }},
    {"ulps", [](const ValueErrors& e) { return e.max_ulps; }},
    {"cosine", [](const ValueErrors& e) { return 1 - e.cosine(); }},
};

}  // namespace

absl::StatusOr<ErrorBound> ParseErrorBound(absl::string_view text) {
  ErrorBound bound;
  const size_t colon = text.find(':');
  absl::string_view number = text;
  if (colon != absl::string_view::npos) {
    bound.measure = std::string(text.substr(0, colon));
    number.remove_prefix(colon + 1);
  }
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  if (std::find(names.begin(), names.end(), bound.measure) == names.end()) {
    return UsageError("--tolerance ", text, ": no measure is called ",
                      bound.measure, NearestHint(bound.measure, names),
                      " (all: ", absl::StrJoin(names, ", "), ")");
  }
  if (!absl::SimpleAtod(number, &bound.most) || !(bound.most >= 0)) {
    return UsageError("--tolerance ", text,
                      ": expected a number of at least 0 (0.01), or a measure "
                      "and one (ulps:4)");
  }
  return bound;
}

double Measure(const ErrorBound& bound, const ValueErrors& errors) {
  if (errors.non_finite > 0) return std::numeric_limits<double>::infinity();
  for (const Kind& kind : kKinds) {
    if (bound.measure == kind.name) return kind.of(errors);
  }
  return 0;
}

const ValueErrors& ErrorsThatCount(const ComparedValue& value) {
  return value.isolated.elements > 0 ? value.isolated : value.chained;
}

std::vector<int> WorstFirst(const Comparison& comparison,
                            const ErrorBound& bound) {
  std::vector<std::pair<double, int>> measured;
  for (size_t i = 0; i < comparison.values.size(); ++i) {
    const ValueErrors& errors = ErrorsThatCount(comparison.values[i]);
    if (errors.elements == 0) continue;
    measured.emplace_back(-Measure(bound, errors), static_cast<int>(i));
  }
  std::sort(measured.begin(), measured.end());
  std::vector<int> positions;
  for (const auto& [measure, position] : measured) {
    positions.push_back(position);
  }
  return positions;
}

}  // namespace runtime
}  // namespace halftone
