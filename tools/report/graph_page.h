// The drawing in the pages of `inspect --html` and `diff --html`: forward ops
// in one column, their backward ops beside them, edges in the gutters, casts as
// marks where an edge arrives. Rows that are out of sight are not in the
// document, so that models of ten thousand ops open at once.
#ifndef HALFTONE_TOOLS_REPORT_GRAPH_PAGE_H_
#define HALFTONE_TOOLS_REPORT_GRAPH_PAGE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace halftone {
namespace tools {

extern const char kGraphStyle[];
// Draws what GraphHtml holds.
extern const char kGraphScript[];

// The place of the drawing with its search box, and its data: GraphJson or
// GraphDiffJson. `legend` is not escaped here.
std::string GraphHtml(nlohmann::json graph, absl::string_view legend);
// The legend of a graph's precisions.
extern const char kPrecisionLegend[];

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_GRAPH_PAGE_H_
