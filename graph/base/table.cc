#include "graph/base/table.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "graph/base/wrap.h"

namespace halftone {
namespace {

constexpr int kGap = 2, kLeast = 8;

}  // namespace

void Table::Add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = PrintableName(cell);
  rows_.push_back(std::move(row));
}

int Table::Width(int column) const {
  int width = 0;
  for (const auto& row : rows_) width = std::max(width, WidthOf(row[column]));
  return width;
}

// What can still be read: numbers, whole, below words of a head.
int Table::Least(int column) const {
  if (right_aligned_.count(column) == 0) {
    return std::min(Width(column), kLeast);
  }
  int least = 0;
  for (const absl::string_view word : absl::StrSplit(rows_[0][column], ' ')) {
    least = std::max(least, WidthOf(word));
  }
  for (size_t r = 1; r < rows_.size(); ++r) {
    least = std::max(least, WidthOf(rows_[r][column]));
  }
  return least;
}

std::vector<Table::Columns> Table::Parts(int columns) const {
  std::vector<Columns> parts = {{0}};
  int total = Least(0);
  for (int c = 1; c < static_cast<int>(rows_[0].size()); ++c) {
    const int more = kGap + Least(c);
    if (columns > 0 && total + more > columns && parts.back().size() > 1) {
      parts.push_back({0});
      total = Least(0);
    }
    parts.back().push_back(c);
    total += more;
  }
  return parts;
}

std::vector<int> Table::Widths(const Columns& part, int columns) const {
  std::vector<int> widths, least;
  for (const int c : part) {
    widths.push_back(Width(c));
    least.push_back(Least(c));
  }
  if (columns <= 0) return widths;
  int total = std::accumulate(widths.begin(), widths.end(),
                              kGap * static_cast<int>(widths.size() - 1));
  // The widest that can gives way first.
  for (; total > columns; --total) {
    int widest = -1;
    for (int i = 0; i < static_cast<int>(widths.size()); ++i) {
      if (widths[i] <= least[i]) continue;
      if (widest < 0 || widths[i] > widths[widest]) widest = i;
    }
    if (widest < 0) break;
    --widths[widest];
  }
  return widths;
}

void Table::AppendRow(const std::vector<std::string>& row, const Columns& part,
                      const std::vector<int>& widths, std::string* text) const {
  std::vector<std::vector<std::string>> cells;
  size_t lines = 1;
  for (size_t i = 0; i < part.size(); ++i) {
    cells.push_back(Wrapped(row[part[i]], widths[i]));
    lines = std::max(lines, cells.back().size());
  }
  for (size_t l = 0; l < lines; ++l) {
    std::string line;
    for (size_t i = 0; i < part.size(); ++i) {
      const std::string cell = l < cells[i].size() ? cells[i][l] : "";
      const std::string blanks(widths[i] - WidthOf(cell), ' ');
      const bool right = right_aligned_.count(part[i]) > 0;
      absl::StrAppend(&line, i > 0 ? "  " : "", right ? blanks : "", cell,
                      right ? "" : blanks);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(text, line, "\n");
  }
}

std::string Table::Text(int columns) const {
  std::string text;
  for (const Columns& part : Parts(columns)) {
    if (!text.empty()) text += "\n";
    const std::vector<int> widths = Widths(part, columns);
    for (const auto& row : rows_) AppendRow(row, part, widths, &text);
  }
  return text;
}

}  // namespace halftone
