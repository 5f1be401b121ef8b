// What `halftone report` writes: runs side by side, on one page.
#ifndef HALFTONE_TOOLS_REPORT_RUN_PAGE_H_
#define HALFTONE_TOOLS_REPORT_RUN_PAGE_H_

#include <string>

#include "absl/types/span.h"
#include "tools/report/run_history.h"

namespace halftone {
namespace tools {

// A page of HTML that needs nothing else: a table of what each run's summary
// says, curves of loss, metrics, learning rate, loss scale with skipped steps,
// gradient norm and step time with its parts, then per-op cost, scale events,
// failures and strategies as far as a run has them.
std::string RunPage(absl::Span<const RunHistory> runs);
// The table, and the last value of each curve, as one object.
std::string RunPageJson(absl::Span<const RunHistory> runs);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_RUN_PAGE_H_
