#include "graph/base/shell_word.h"

#include "gtest/gtest.h"

namespace halftone {
namespace {

TEST(ShellWord, IsQuotedWhereAShellWouldReadMore) {
  EXPECT_EQ(ShellWord("layer1/conv-2.w@x"), "layer1/conv-2.w@x");
  EXPECT_EQ(ShellWord("f c"), "'f c'");
  EXPECT_EQ(ShellWord("$(x)"), "'$(x)'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord("fc*"), "'fc*'");
  EXPECT_EQ(ShellWord(""), "''");
}

}  // namespace
}  // namespace halftone
