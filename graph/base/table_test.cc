#include "graph/base/table.h"

#include "gtest/gtest.h"

namespace halftone {
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

TEST(Table, WrapsAtTheWidth) {
  Table table({"op", "why", "n"});
  table.Add({"conv1", "one two three four", "12"});
  table.Add({"a_name_of_eighteen", "x", "3"});
  table.RightAlign(2);
  EXPECT_EQ(table.Text(30),
            "op            why            n\n"
            "conv1         one two       12\n"
            "              three four\n"
            "a_name_of_ei  x              3\n"
            "ghteen\n");
  EXPECT_EQ(table.Text(200), table.Text(0));
  // No column gets narrower than what can still be read.
  EXPECT_NE(table.Text(1).find("conv1"), std::string::npos);
}

// Nobody reads a number that is broken, nor a table without names.
TEST(Table, GoesOnBelowWhereColumnsHaveNoRoom) {
  Table table({"op", "not finite", "bytes", "why"});
  table.Add({"conv1", "25 %", "1,234,567", "one two three"});
  table.Add({"x", "-", "12", ""});
  table.RightAlign(1);
  table.RightAlign(2);
  EXPECT_EQ(table.Text(34),
            "op        not      bytes  why\n"
            "       finite\n"
            "conv1    25 %  1,234,567  one two\n"
            "                          three\n"
            "x           -         12\n");
  EXPECT_EQ(table.Text(24),
            "op        not      bytes\n"
            "       finite\n"
            "conv1    25 %  1,234,567\n"
            "x           -         12\n"
            "\n"
            "op     why\n"
            "conv1  one two three\n"
            "x\n");
}

TEST(Table, NamesStayInTheirCells) {
  Table table({"op", "why"});
  table.Add({"a\nb\033[2J", "gr\xc3\xbcn"});
  table.Add({"c", "d"});
  EXPECT_EQ(table.Text(),
            "op                 why\n"
            "a\\u000ab\\u001b[2J  gr\xc3\xbcn\n"
            "c                  d\n");
}

}  // namespace
}  // namespace halftone
