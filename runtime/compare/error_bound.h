// Which errors of a comparison count, and how large they may be.
#ifndef HALFTONE_RUNTIME_COMPARE_ERROR_BOUND_H_
#define HALFTONE_RUNTIME_COMPARE_ERROR_BOUND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/compare/compare_programs.h"

namespace halftone {
namespace runtime {

struct ErrorBound {
  std::string measure = "error";
  double most = 0;
};
// "0.01", "ulps:4": error (relative, of Euclidean norms; the default), max_abs,
// max_rel, ulps, or cosine, which is to be at least 1 minus the bound. Errors
// (kUsage).
absl::StatusOr<ErrorBound> ParseErrorBound(absl::string_view text);

// What is to be at most `most`; infinite where a value is not finite.
double Measure(const ErrorBound& bound, const ValueErrors& errors);

// Of a value the isolated errors where they were measured, else the chained.
const ValueErrors& ErrorsThatCount(const ComparedValue& value);

// Positions of the measured values, the largest measure first, in program order
// where it is the same.
std::vector<int> WorstFirst(const Comparison& comparison,
                            const ErrorBound& bound);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COMPARE_ERROR_BOUND_H_
