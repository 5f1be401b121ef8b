// What `halftone search` shows.
#ifndef HALFTONE_TOOLS_SEARCH_SEARCH_REPORT_H_
#define HALFTONE_TOOLS_SEARCH_SEARCH_REPORT_H_

#include <string>

#include "tools/search/precision_search.h"
#include "tools/search/trials.h"

namespace halftone {
namespace tools {

// A strategy file, what was found as comments at its head.
std::string SearchText(const SearchAnswer& answer, const Tolerance& tolerance,
                       int runs, const Trials& trials);
std::string SearchJson(const SearchAnswer& answer, const Tolerance& tolerance,
                       int runs, const Trials& trials);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_SEARCH_SEARCH_REPORT_H_
