#include "graph/base/table.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "graph/base/check.h"
#include "graph/base/wrap.h"

namespace halftone {
namespace {

constexpr int kGap = 2, kLeast = 8;

}  // namespace

void Table::Add(std::vector<std::string> row) {
  HT_CHECK(rows_.empty() || row.size() == rows_[0].size(),
           "a row has a cell for each column");
  for (std::string& cell : row) cell = PrintableName(cell);
  rows_.push_back(std::move(row));
}

// What can still be read: numbers, whole, below words of a head.
Table::Width Table::WidthOfColumn(int column) const {
  Width width;
  const bool right = right_aligned_.count(column) > 0;
  for (size_t r = 0; r < rows_.size(); ++r) {
    const int cell = WidthOf(rows_[r][column]);
    width.whole = std::max(width.whole, cell);
    if (r > 0 && right) width.least = std::max(width.least, cell);
  }
  if (!right) return {width.whole, std::min(width.whole, kLeast)};
  for (const absl::string_view word : absl::StrSplit(rows_[0][column], ' ')) {
    width.least = std::max(width.least, WidthOf(word));
  }
  return width;
}

// The first column of each part is the table's.
std::vector<Table::Columns> Table::Parts(const std::vector<Width>& of,
                                         int columns) {
  std::vector<Columns> parts = {{0}};
  int total = of[0].least;
  for (int c = 1; c < static_cast<int>(of.size()); ++c) {
    const int more = kGap + of[c].least;
    if (columns > 0 && total + more > columns && parts.back().size() > 1) {
      parts.push_back({0});
      total = of[0].least;
    }
    parts.back().push_back(c);
    total += more;
  }
  return parts;
}

std::vector<int> Table::Widths(const std::vector<Width>& of,
                               const Columns& part, int columns) {
  std::vector<int> widths;
  for (const int c : part) widths.push_back(of[c].whole);
  if (columns <= 0) return widths;
  int total = std::accumulate(widths.begin(), widths.end(),
                              kGap * static_cast<int>(widths.size() - 1));
  // The widest that can gives way first.
  for (; total > columns; --total) {
    int widest = -1;
    for (int i = 0; i < static_cast<int>(widths.size()); ++i) {
      if (widths[i] <= of[part[i]].least) continue;
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
  std::vector<Width> of_columns;
  for (int c = 0; c < static_cast<int>(rows_[0].size()); ++c) {
    of_columns.push_back(WidthOfColumn(c));
  }
  std::string text;
  for (const Columns& part : Parts(of_columns, columns)) {
    if (!text.empty()) text += "\n";
    const std::vector<int> widths = Widths(of_columns, part, columns);
    for (const auto& row : rows_) AppendRow(row, part, widths, &text);
  }
  return text;
}

}  // namespace halftone
