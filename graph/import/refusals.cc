#include "graph/import/refusals.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"

namespace halftone {
namespace {

// More kinds than any model has; a hostile one may have a million.
constexpr size_t kMost = 100;

}  // namespace

void Refusals::Add(absl::string_view what, absl::string_view kind,
                   absl::string_view why, absl::string_view place) {
  const auto [found, added] =
      index_.try_emplace(absl::StrCat(what, "\n", kind), lines_.size());
  if (added) {
    lines_.push_back({std::string(what), std::string(why), std::string(place)});
  }
  ++lines_[found->second].count;
}

std::vector<std::string> Refusals::Lines() const {
  std::vector<std::string> texts;
  const size_t shown = std::min(lines_.size(), kMost);
  for (size_t i = 0; i < shown; ++i) {
    const Line& line = lines_[i];
    texts.push_back(absl::StrCat(line.what, " x", line.count, ": ", line.why,
                                 "; first at ", line.place));
  }
  if (lines_.size() > shown) {
    texts.push_back(absl::StrCat("and ", lines_.size() - shown, " more"));
  }
  return texts;
}

absl::Status Refusals::ToStatus(absl::string_view file,
                                absl::string_view done) const {
  if (lines_.empty()) return absl::OkStatus();
  std::string text = absl::StrCat(
      file, ": cannot be ", done, ", ", lines_.size(),
      lines_.size() == 1 ? " thing stands" : " things stand", " in the way:");
  for (const std::string& line : Lines()) {
    absl::StrAppend(&text, "\n  ", line);
  }
  return ModelError(text);
}

}  // namespace halftone
