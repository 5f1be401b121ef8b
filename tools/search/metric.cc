#include "tools/search/metric.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "runtime/compare/error_bound.h"

namespace halftone {
namespace tools {
namespace {

constexpr char kLoss[] = "loss";

double MeanOf(absl::Span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Of a sample; 0 of a single one, of which nothing is known.
double DeviationOf(absl::Span<const double> values) {
  if (values.size() < 2) return 0;
  const double mean = MeanOf(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

// None: one of them has none.
std::optional<std::vector<double>> AllOf(absl::Span<const TrialValue> runs) {
  std::vector<double> values;
  for (const TrialValue& value : runs) {
    if (!value.has_value()) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

}  // namespace

double Metric::WorseBy(double value, double reference) const {
  return kind == Kind::kShare ? reference - value : value - reference;
}

std::string Metric::Text(TrialValue value) const {
  if (!value.has_value()) {
    return kind == Kind::kError ? "not finite" : "diverged";
  }
  return absl::StrFormat(kind == Kind::kShare ? "%.4g %%" : "%.4g", *value);
}

absl::StatusOr<Tolerance> ParseTolerance(const std::string& text,
                                         const Program& program, bool values) {
  const size_t colon = text.rfind(':');
  Tolerance tolerance;
  if (colon == std::string::npos ||
      !absl::SimpleAtod(text.substr(colon + 1), &tolerance.most) ||
      !std::isfinite(tolerance.most) || tolerance.most < 0) {
    return UsageError(
        "--tolerance \"", text,
        "\": expected METRIC:NUMBER, percentage points (top1:0.2) or of the "
        "loss (loss:0.01)",
        values ? " by training, or of an error of values (error:0.01)" : "");
  }
  Metric& metric = tolerance.metric;
  metric.name = text.substr(0, colon);
  std::vector<std::string> known = {kLoss};
  for (const MetricInfo& of_model : program.metrics) {
    known.push_back(of_model.name);
  }
  if (std::find(known.begin(), known.end(), metric.name) != known.end()) {
    if (metric.name == kLoss) metric.kind = Metric::Kind::kLoss;
    return tolerance;
  }
  if (values && runtime::ParseErrorBound(text).ok()) {
    metric.kind = Metric::Kind::kError;
    return tolerance;
  }
  return UsageError("--tolerance \"", text, "\": ", program.name,
                    " has no metric \"", metric.name, "\"",
                    NearestHint(metric.name, known),
                    values ? "; measures of values are those of halftone "
                             "compare --tolerance"
                           : "");
}

std::optional<Judge> Judge::By(const Tolerance& tolerance,
                               absl::Span<const TrialValue> reference) {
  const auto values = AllOf(reference);
  if (!values.has_value()) return std::nullopt;
  return Judge(tolerance, *values);
}

Judge::Judge(const Tolerance& tolerance, const std::vector<double>& reference)
    : tolerance_(tolerance),
      reference_runs_(static_cast<int>(reference.size())),
      reference_(MeanOf(reference)),
      deviation_(DeviationOf(reference)) {}

Verdict Judge::Of(absl::Span<const TrialValue> runs) const {
  const auto misses = [this](double value) {
    return !(tolerance_.metric.WorseBy(value, reference_) <= tolerance_.most);
  };
  Verdict verdict;
  verdict.runs = static_cast<int>(runs.size());
  verdict.missing = static_cast<int>(
      std::count_if(runs.begin(), runs.end(), [&](const TrialValue& value) {
        return !value.has_value() || misses(*value);
      }));
  const auto values = AllOf(runs);
  if (values.has_value()) verdict.value = MeanOf(*values);
  verdict.misses = !verdict.value.has_value() || misses(*verdict.value);
  return verdict;
}

bool Judge::IsDecided(absl::Span<const TrialValue> runs) const {
  const auto values = AllOf(runs);
  if (!values.has_value()) return true;
  const double off =
      tolerance_.metric.WorseBy(MeanOf(*values), reference_) - tolerance_.most;
  const double noise = std::max(deviation_, DeviationOf(*values));
  const double error =
      noise * std::sqrt(1.0 / reference_runs_ +
                        1.0 / static_cast<double>(values->size()));
  return std::abs(off) > 2 * error || noise == 0;
}

}  // namespace tools
}  // namespace halftone
