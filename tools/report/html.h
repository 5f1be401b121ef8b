// What the pages of reports (--html) share. A page needs nothing else: no file,
// no network.
#ifndef HALFTONE_TOOLS_REPORT_HTML_H_
#define HALFTONE_TOOLS_REPORT_HTML_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace halftone {
namespace tools {

// Text as it stands between tags and in quoted attributes.
std::string HtmlEscaped(absl::string_view text);

// A table of texts, escaped here; columns whose head begins with '>' are
// right-aligned. `classes`: of the rows, if given: f16, bf16, f32 and other
// have colours.
std::string HtmlTable(std::vector<std::string> head,
                      const std::vector<std::vector<std::string>>& rows,
                      const std::vector<std::string>& classes = {});

// A field that hides the rows which do not contain what is typed.
std::string HtmlFilter();

// `title` is escaped here, `body` is not.
std::string HtmlPage(absl::string_view title, absl::string_view body);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_HTML_H_
