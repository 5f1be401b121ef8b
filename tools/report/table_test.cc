#include "tools/report/table.h"

#include "gtest/gtest.h"

namespace halftone {
namespace tools {
namespace {

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
  Table table({"op", "bytes", "why"});
  table.Add({"conv1", "12", "WHITE_LIST"});
  table.Add({"x", "1,234,567", ""});
  table.RightAlign(1);
  EXPECT_EQ(table.rows(), 2);
  EXPECT_EQ(table.Text(),
            "op         bytes  why\n"
            "conv1         12  WHITE_LIST\n"
            "x      1,234,567\n");
}

TEST(Table, OfAHeadAlone) { EXPECT_EQ(Table({"a", "b"}).Text(), "a  b\n"); }

}  // namespace
}  // namespace tools
}  // namespace halftone
