// What trials measure, and how far it may be from a reference's.
#ifndef HALFTONE_TOOLS_SEARCH_METRIC_H_
#define HALFTONE_TOOLS_SEARCH_METRIC_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/ir/program.h"
#include "tools/search/kept_results.h"

namespace halftone {
namespace tools {

struct Metric {
  enum class Kind {
    kShare,  // a metric of the model's in a run's last eval, in percent
    kLoss,   // of that eval
    kError,  // a measure of values against the reference program's
  };
  std::string name;
  Kind kind = Kind::kShare;

  // By how much `value` is worse than `reference`.
  double WorseBy(double value, double reference) const;
  // "97.5 %", "0.0312", "diverged".
  std::string Text(TrialValue value) const;
};

// "top1:0.2": a metric, and how far it may be worse than the reference's.
struct Tolerance {
  Metric metric;
  double most = 0;  // percentage points, of the loss, or of the measure
};
// A metric of the program or its loss; with `values` also a measure of values
// (runtime/compare/error_bound.h), where no metric has its name. Errors
// (kUsage): the text; no such metric, with the nearest.
absl::StatusOr<Tolerance> ParseTolerance(const std::string& text,
                                         const Program& program, bool values);

// What the runs of a program say of a tolerance.
struct Verdict {
  bool misses = false;
  TrialValue value;  // the mean of its runs
  // Its runs, and how many of them miss the tolerance by themselves.
  int runs = 0, missing = 0;
  bool is_flaky() const { return missing != 0 && missing != runs; }
};

// Tells whether programs miss a tolerance of a reference's metric.
class Judge {
 public:
  // `reference`: its runs, one at least. None: one of them has no value.
  static std::optional<Judge> By(const Tolerance& tolerance,
                                 absl::Span<const TrialValue> reference);

  // Of runs whose number the mean decides. A run without a value misses, and
  // so does the program.
  Verdict Of(absl::Span<const TrialValue> runs) const;
  // Whether more runs would not change the verdict: the mean is further from
  // the bound than twice the standard error of the difference of two means,
  // with the larger of the standard deviations of both sides' runs.
  bool IsDecided(absl::Span<const TrialValue> runs) const;

  double reference() const { return reference_; }  // the mean
  const Tolerance& tolerance() const { return tolerance_; }

 private:
  Judge(const Tolerance& tolerance, const std::vector<double>& reference);

  Tolerance tolerance_;
  int reference_runs_;
  double reference_, deviation_;
};

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_SEARCH_METRIC_H_
