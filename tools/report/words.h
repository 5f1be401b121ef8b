// Lists of words in reports.
#ifndef HALFTONE_TOOLS_REPORT_WORDS_H_
#define HALFTONE_TOOLS_REPORT_WORDS_H_

#include <string>

#include "absl/types/span.h"

namespace halftone {
namespace tools {

// "a b c and 9 more": at most `most` of them.
std::string JoinFew(absl::Span<const std::string> words, size_t most);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_WORDS_H_
