// What `halftone explain` says.
#ifndef HALFTONE_TOOLS_REPORT_EXPLAIN_REPORT_H_
#define HALFTONE_TOOLS_REPORT_EXPLAIN_REPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/io/compiled_model.h"

namespace halftone {
namespace tools {

// A note ("D8"), a reason ("GRAY_ALL_LOW") or an exit code ("E7", "7").
// Unknown: kUsage, nearest named.
absl::StatusOr<std::string> ExplainCode(const std::string& code, bool json);
// All of them.
std::string ExplainCodes(bool json);
// What halftone explain has a page of without a model, by title.
std::string ListSubjects(bool json);
// An op, a value, a cast, a feed or a cell (parameter, running statistic,
// optimizer state, scaler, clock) by name; what the passes added is known too.
// Unknown: kUsage, nearest named.
absl::StatusOr<std::string> ExplainName(const CompiledModel& model,
                                        const std::string& name, bool json);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_EXPLAIN_REPORT_H_
