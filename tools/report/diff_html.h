// `halftone diff --html`.
#ifndef HALFTONE_TOOLS_REPORT_DIFF_HTML_H_
#define HALFTONE_TOOLS_REPORT_DIFF_HTML_H_

#include <string>

#include "absl/status/statusor.h"
#include "graph/io/compiled_model.h"
#include "tools/report/diff_report.h"

namespace halftone {
namespace tools {

// One page that needs nothing else: what DiffText says, both programs as one
// drawing in which what differs is marked, casts that only one of them has.
// Errors (kDiffer): the programs have no op in common.
absl::StatusOr<std::string> DiffHtml(const CompiledModel& before,
                                     const CompiledModel& after,
                                     const Difference& difference);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_DIFF_HTML_H_
