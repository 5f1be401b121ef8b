#include "tools/report/words.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace halftone {
namespace tools {

std::string JoinFew(absl::Span<const std::string> words, size_t most) {
  const std::string first = absl::StrJoin(words.subspan(0, most), " ");
  if (words.size() <= most) return first;
  return absl::StrCat(first, " and ", words.size() - most, " more");
}

}  // namespace tools
}  // namespace halftone
