// A table of text: columns as wide as their widest cell, two blanks between;
// on a terminal no wider than that: cells go on in further lines.
#ifndef HALFTONE_TOOLS_REPORT_TABLE_H_
#define HALFTONE_TOOLS_REPORT_TABLE_H_

#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/display.h"

namespace halftone {
namespace tools {

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
  std::vector<int> Widths(int columns) const;

  std::vector<std::vector<std::string>> rows_;  // the head first
  std::set<int> right_aligned_;
};

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_TABLE_H_
