// What `halftone compare` prints and writes.
#ifndef HALFTONE_TOOLS_COMPARE_COMPARE_REPORT_H_
#define HALFTONE_TOOLS_COMPARE_COMPARE_REPORT_H_

#include <string>

#include "tools/compare/compare_facts.h"

namespace halftone {
namespace tools {

std::string CompareText(const CompareFacts& facts);
std::string CompareJson(const CompareFacts& facts);
// One page that needs nothing else: the worst, and all values with a filter.
std::string CompareHtml(const CompareFacts& facts);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMPARE_COMPARE_REPORT_H_
