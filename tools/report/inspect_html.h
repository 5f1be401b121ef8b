// `halftone inspect --html`.
#ifndef HALFTONE_TOOLS_REPORT_INSPECT_HTML_H_
#define HALFTONE_TOOLS_REPORT_INSPECT_HTML_H_

#include <string>

#include "tools/report/model_facts.h"

namespace halftone {
namespace tools {

// One page that needs nothing else: the summary, all ops as a tree of scopes
// coloured by precision, all casts with reason, cost and fate, parameters and
// buckets.
std::string InspectHtml(const ModelFacts& facts);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_INSPECT_HTML_H_
