#include "graph/base/display.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace halftone {
namespace {

TEST(Printable, LeavesTextAlone) {
  for (const char* text :
       {"", "plain\n\ttext", "gr\xc3\xbc\xc3\x9f", "\xe6\x97\xa5\xe6\x9c\xac",
        "\xf0\x9f\x90\x9f", "\\u001b"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(Printable, TakesTheMeaningFromWhatATerminalObeys) {
  const std::pair<std::string, const char*> kCases[] = {
      {"\033[31mred\033[0m", "\\u001b[31mred\\u001b[0m"},
      {"a\rb\bc\a", "a\\u000db\\u0008c\\u0007"},
      {std::string("a\0b", 3), "a\\u0000b"},
      {"\x7f", "\\u007f"},
      {"\xc2\x9b"
       "31m",
       "\\u009b31m"},  // C1's CSI
      {"\x9b"
       "31m",
       "\\x9b31m"},  // as one raw byte
      {"\xe2\x80\xae"
       "txet",
       "\\u202etxet"},  // right to left
      {"\xe2\x81\xa6"
       "a\xe2\x81\xa9",
       "\\u2066a\\u2069"},
      {"\xd8\x9c", "\\u061c"},
      {"\xe2\x80\x8b", "\\u200b"},             // has no width
      {"\xf3\xa0\x80\x81", "\\udb40\\udc01"},  // a tag, as JSON spells it
      {"\xc0\x9b", "\\xc0\\x9b"},              // overlong
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},     // a surrogate
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
      {"cut \xe2\x80", "cut \\xe2\\x80"},
  };
  for (const auto& [text, shown] : kCases) {
    EXPECT_EQ(Printable(text), shown);
    EXPECT_EQ(Printable(Printable(text)), shown);
  }
}

TEST(Printable, NamesKeepNoNewline) {
  EXPECT_EQ(Printable("a\nb\tc"), "a\nb\tc");
  EXPECT_EQ(PrintableName("a\nerror    b\tc"), "a\\u000aerror    b\\u0009c");
}

TEST(Highlighted, LabelsAndDTypes) {
  EXPECT_EQ(Highlighted("error    x\n"), "\033[1;31merror\033[0m    x\n");
  EXPECT_EQ(Highlighted("a\n  warning  b"), "a\n  \033[33mwarning\033[0m  b");
  EXPECT_EQ(Highlighted("no error, no warning"), "no error, no warning");
  EXPECT_EQ(Highlighted("fc f16->f32"),
            "fc \033[32mf16\033[0m->\033[36mf32\033[0m");
  EXPECT_EQ(Highlighted("a.f16 f16.b f16_c /f16 xbf16 f160"),
            "a.f16 f16.b f16_c /f16 xbf16 f160");
  EXPECT_EQ(Highlighted("bf16[2]"), "\033[32mbf16\033[0m[2]");
}

TEST(MayColor, NeverInAFile) {
  std::FILE* file = std::tmpfile();
  EXPECT_FALSE(MayColor(file));
  EXPECT_EQ(ColumnsOf(file), 0);
  ShowReport("f16 \033[2J", file);
  std::rewind(file);
  char text[64] = {};
  ASSERT_GT(std::fread(text, 1, sizeof(text), file), 0u);
  EXPECT_STREQ(text, "f16 \\u001b[2J");
  std::fclose(file);
}

// The launcher says that rank 0's stderr ends on a terminal.
TEST(MayColor, OfARankAndNotUnderNoColor) {
  if (isatty(STDERR_FILENO) != 0) GTEST_SKIP() << "stderr is a terminal";
  unsetenv("NO_COLOR");
  setenv("TERM", "xterm", 1);
  EXPECT_FALSE(MayColor(stderr));
  setenv("HALFTONE_CONSOLE_COLUMNS", "120", 1);
  EXPECT_TRUE(MayColor(stderr));
  EXPECT_EQ(ColumnsOf(stderr), 120);
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(MayColor(stderr));
  unsetenv("NO_COLOR");
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(MayColor(stderr));
  unsetenv("HALFTONE_CONSOLE_COLUMNS");
}

// As where a program runs one command after the other.
TEST(StartShowing, ForgetsWhatWasLost) {
  std::fflush(stdout);
  const int kept = dup(STDOUT_FILENO);
  const int full = open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  dup2(full, STDOUT_FILENO);
  StartShowing();
  Show("what is lost", stdout);
  const absl::Status lost = CheckStdout();
  dup2(kept, STDOUT_FILENO);
  close(full);
  close(kept);
  EXPECT_EQ(lost.message(),
            "stdout cannot be written: No space left on device; what was to be "
            "shown is lost");
  KeepStdoutForOutput();
  EXPECT_TRUE(HasShownOnStdout());

  StartShowing();
  EXPECT_FALSE(HasShownOnStdout());
  Show("\n", stdout);
  EXPECT_TRUE(HasShownOnStdout());  // not on stderr
  EXPECT_TRUE(CheckStdout().ok());
}

}  // namespace
}  // namespace halftone
