#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tests/docs/docs.h"

namespace halftone {
namespace docs {
namespace {

std::string Row(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) {
    absl::StrAppend(&row, " ", absl::StrReplaceAll(cell, {{"|", "\\|"}}), " |");
  }
  return row + "\n";
}

}  // namespace

const char kDerived[] =
    "<!-- Derived from what the product knows of itself. Do not edit:\n"
    "     HT_UPDATE_GOLDEN=1 bazel run //tests/docs:derived_test -->\n";

std::string MarkdownTable(const std::vector<std::string>& head,
                          const std::vector<std::vector<std::string>>& rows) {
  std::string table = Row(head);
  absl::StrAppend(
      &table, "|",
      absl::StrJoin(std::vector<std::string>(head.size(), "---"), "|"), "|\n");
  for (const std::vector<std::string>& row : rows) table += Row(row);
  return table;
}

std::string Code(const std::string& text) {
  return text.empty() ? "" : absl::StrCat("`", text, "`");
}

}  // namespace docs
}  // namespace halftone
