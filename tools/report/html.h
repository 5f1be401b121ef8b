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

// What a click on its title folds and unfolds; `title` is escaped here,
// `content` is not.
std::string HtmlSection(absl::string_view title, bool open,
                        absl::string_view content);

// `title`, which is its heading, too, is escaped here, `body` is not. `style`
// and `script`: what the page has beside what all have.
std::string HtmlPage(absl::string_view title, absl::string_view body,
                     absl::string_view style = "",
                     absl::string_view script = "");

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_HTML_H_
