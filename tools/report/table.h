// A table of text: columns as wide as their widest cell, two blanks between.
#ifndef HALFTONE_TOOLS_REPORT_TABLE_H_
#define HALFTONE_TOOLS_REPORT_TABLE_H_

#include <string>
#include <vector>

namespace halftone {
namespace tools {

class Table {
 public:
  explicit Table(std::vector<std::string> head) : rows_{std::move(head)} {}

  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void RightAlign(int column) { right_aligned_ = column; }
  int rows() const { return static_cast<int>(rows_.size()) - 1; }
  // Lines without blanks at their ends.
  std::string Text() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the head first
  int right_aligned_ = -1;
};

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_TABLE_H_
