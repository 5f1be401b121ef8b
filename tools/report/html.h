// What pages of HTML share: they are self-contained, and whatever comes from a
// file is text in them.
#ifndef HALFTONE_TOOLS_REPORT_HTML_H_
#define HALFTONE_TOOLS_REPORT_HTML_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace halftone {
namespace tools {

// The text as it stands in an element or between an attribute's double quotes.
std::string Escaped(absl::string_view text);

// A table of plain text; columns whose head begins with '>' are right-aligned.
// `classes`: of the rows, text of ours.
std::string TableHtml(std::vector<std::string> head,
                      const std::vector<std::vector<std::string>>& rows,
                      const std::vector<std::string>& classes = {});

// What a click on its title folds and unfolds. `content` is HTML.
std::string Section(absl::string_view title, bool open,
                    const std::string& content);

// A whole page. `title` is plain text; the others are a style sheet, HTML and
// a script.
std::string Page(absl::string_view title, absl::string_view style,
                 absl::string_view body, absl::string_view script);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_HTML_H_
