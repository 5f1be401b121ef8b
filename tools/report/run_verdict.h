// How runs went, and what of their precision may be why.
#ifndef HALFTONE_TOOLS_REPORT_RUN_VERDICT_H_
#define HALFTONE_TOOLS_REPORT_RUN_VERDICT_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tools/report/run_history.h"

namespace halftone {
namespace tools {

struct RunVerdict {
  // "trains"; "diverged"; "stands still": its loss has come down by less than
  // kStill; "falls behind runs/o0": of the best run's metric, or of what the
  // best's loss has come down by, its own lacks more than kBehind. Empty:
  // nothing is known yet: a single loss is logged, or of a run that has not
  // ended fewer than kFewestLogged.
  std::string went;
  // What the logs show: steps skipped, the loss scale at its least, gradients
  // that f16 holds as 0 (where --fetch '*.grad:exponents' was given),
  // parameters without f32 copies.
  std::vector<std::string> why;
};
inline constexpr double kStill = 0.05, kBehind = 0.25;
inline constexpr int kFewestLogged = 10;

// By means over the first and the last tenth of what is logged. A metric is of
// evals, the higher the better. `all`: the runs that it is held against, itself
// among them or not.
RunVerdict VerdictOf(const RunHistory& run, absl::Span<const RunHistory> all);

// "stands still: ...; ...".
std::string Text(const RunVerdict& verdict);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_RUN_VERDICT_H_
