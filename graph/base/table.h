// A table of text: columns as wide as their widest cell, two blanks between.
// On a terminal no wider than that: cells go on in further lines, and columns
// that have no room even so below all rows, beside the first column again.
#ifndef HALFTONE_GRAPH_BASE_TABLE_H_
#define HALFTONE_GRAPH_BASE_TABLE_H_

#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/display.h"

namespace halftone {

class Table {
 public:
  explicit Table(std::vector<std::string> head) { Add(std::move(head)); }

  // Names in a cell lose what a terminal would obey.
  void Add(std::vector<std::string> row);
  void RightAlign(int column) { right_aligned_.insert(column); }
  int rows() const { return static_cast<int>(rows_.size()) - 1; }
  // Lines without blanks at their ends. 0 columns: as wide as it gets.
  std::string Text(int columns = ColumnsOf(stdout)) const;

 private:
  // Columns of the table, in order.
  using Columns = std::vector<int>;
  // Of a column: all of it is seen, and it can still be read.
  struct Width {
    int whole = 0, least = 0;
  };

  Width WidthOfColumn(int column) const;
  static std::vector<Columns> Parts(const std::vector<Width>& of, int columns);
  static std::vector<int> Widths(const std::vector<Width>& of,
                                 const Columns& part, int columns);
  void AppendRow(const std::vector<std::string>& row, const Columns& part,
                 const std::vector<int>& widths, std::string* text) const;

  std::vector<std::vector<std::string>> rows_;  // the head first
  std::set<int> right_aligned_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_TABLE_H_
