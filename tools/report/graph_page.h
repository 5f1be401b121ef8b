// The drawing in the page of `inspect --html`: forward ops in one column, their
// backward ops beside them, edges in the gutters, casts as marks where an edge
// arrives. Rows that are out of sight are not in the document, so that models
// of ten thousand ops open at once.
#ifndef HALFTONE_TOOLS_REPORT_GRAPH_PAGE_H_
#define HALFTONE_TOOLS_REPORT_GRAPH_PAGE_H_

#include <string>

#include "tools/report/model_facts.h"

namespace halftone {
namespace tools {

extern const char kGraphStyle[];
// Draws what GraphHtml holds.
extern const char kGraphScript[];

// The place of the drawing with its search box, and GraphJson as its data.
std::string GraphHtml(const ModelFacts& facts);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_GRAPH_PAGE_H_
