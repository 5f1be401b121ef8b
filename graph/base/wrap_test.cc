#include "graph/base/wrap.h"

#include "gtest/gtest.h"

namespace halftone {
namespace {

TEST(Wrapped, AtBlanksAndInsideLongWords) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(Wrapped("", 5), Lines{""});
  EXPECT_EQ(Wrapped("a b", 0), Lines{"a b"});
  EXPECT_EQ(Wrapped("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(Wrapped("one two three", 6), (Lines{"one", "two", "three"}));
  EXPECT_EQ(Wrapped("abcdefgh", 3), (Lines{"abc", "def", "gh"}));
  EXPECT_EQ(Wrapped("\xc3\xbc\xc3\xbc\xc3\xbc", 2),
            (Lines{"\xc3\xbc\xc3\xbc", "\xc3\xbc"}));
  EXPECT_EQ(WidthOf("\xc3\xbc-"), 2);
}

TEST(Hanging, GoesOnBelowItsText) {
  EXPECT_EQ(Hanging("casts", "one two", 8, 0), "casts   one two\n");
  EXPECT_EQ(Hanging("casts", "one two three four five six seven", 8, 30),
            "casts   one two three four\n        five six seven\n");
  EXPECT_EQ(Hanging("a_long_label", "x", 8, 0), "a_long_label x\n");
}

TEST(FittedLines, GoOnBelowTheirText) {
  const std::string text =
      "change    one two three four five\n"
      "  the rule of this op and its reason\n"
      "short\n";
  EXPECT_EQ(FittedLines(text, 0), text);
  EXPECT_EQ(FittedLines(text, 80), text);
  EXPECT_EQ(FittedLines(text, 30),
            "change    one two three four\n"
            "          five\n"
            "  the rule of this op and its\n"
            "  reason\n"
            "short\n");
  // What can be copied stays in one piece.
  EXPECT_EQ(
      FittedLines("written   a/path/that/is/longer/than/that and more", 30),
      "written   a/path/that/is/longer/than/that\n"
      "          and more");
}

}  // namespace
}  // namespace halftone
