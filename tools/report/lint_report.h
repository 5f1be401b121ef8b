// What `halftone lint` says: everything about a compiled model that is worth a
// second look.
#ifndef HALFTONE_TOOLS_REPORT_LINT_REPORT_H_
#define HALFTONE_TOOLS_REPORT_LINT_REPORT_H_

#include <string>
#include <vector>

#include "tools/report/model_facts.h"

namespace halftone {
namespace tools {

// The report's notes, by code, and what is too common to be said at every
// compile (T1).
std::vector<proto::Note> LintNotes(const CompiledModel& model);

// A note in each row: its code, where the model's file has the first op of it,
// and what it says.
std::string LintText(const ModelFacts& facts);
// One object: `findings`, each {"code","text","ops","line","help"}, and
// `totals` as inspect has them.
std::string LintJson(const ModelFacts& facts);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_LINT_REPORT_H_
