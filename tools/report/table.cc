#include "tools/report/table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace halftone {
namespace tools {

std::string Table::Text() const {
  std::vector<size_t> widths(rows_[0].size(), 0);
  for (const auto& row : rows_) {
    for (size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], row[c].size());
    }
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string blanks(widths[c] - row[c].size(), ' ');
      const bool right = static_cast<int>(c) == right_aligned_;
      absl::StrAppend(&line, c > 0 ? "  " : "", right ? blanks : "", row[c],
                      right ? "" : blanks);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

}  // namespace tools
}  // namespace halftone
