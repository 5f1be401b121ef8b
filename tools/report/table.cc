#include "tools/report/table.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "tools/report/words.h"

namespace halftone {
namespace tools {
namespace {

constexpr int kGap = 2, kLeast = 8;

}  // namespace

void Table::Add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = PrintableName(cell);
  rows_.push_back(std::move(row));
}

std::vector<int> Table::Widths(int columns) const {
  std::vector<int> widths(rows_[0].size(), 0);
  for (const auto& row : rows_) {
    for (size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], WidthOf(row[c]));
    }
  }
  if (columns <= 0) return widths;
  // The widest gives way first.
  int total = std::accumulate(widths.begin(), widths.end(),
                              kGap * static_cast<int>(widths.size() - 1));
  for (; total > columns; --total) {
    const auto widest = std::max_element(widths.begin(), widths.end());
    if (*widest <= kLeast) break;
    --*widest;
  }
  return widths;
}

std::string Table::Text(int columns) const {
  const std::vector<int> widths = Widths(columns);
  std::string text;
  for (const auto& row : rows_) {
    std::vector<std::vector<std::string>> cells;
    size_t lines = 1;
    for (size_t c = 0; c < row.size(); ++c) {
      cells.push_back(Wrapped(row[c], widths[c]));
      lines = std::max(lines, cells.back().size());
    }
    for (size_t l = 0; l < lines; ++l) {
      std::string line;
      for (size_t c = 0; c < row.size(); ++c) {
        const std::string cell = l < cells[c].size() ? cells[c][l] : "";
        const std::string blanks(widths[c] - WidthOf(cell), ' ');
        const bool right = right_aligned_.count(static_cast<int>(c)) > 0;
        absl::StrAppend(&line, c > 0 ? "  " : "", right ? blanks : "", cell,
                        right ? "" : blanks);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      absl::StrAppend(&text, line, "\n");
    }
  }
  return text;
}

}  // namespace tools
}  // namespace halftone
