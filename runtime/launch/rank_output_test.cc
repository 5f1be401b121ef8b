#include "runtime/launch/rank_output.h"

#include <unistd.h>

#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::ElementsAre;

TEST(IsAlarm, KnowsAlarmsFromWords) {
  for (const char* line :
       {"error    model.pbtxt:2: no op", "warning  disk", "WARNING: x",
        "  Error: y", "[ERROR] in z", "\x1b[31merror\x1b[0m: red", "*** fatal",
        "terminate called after throwing", "Traceback (most",
        "a.cc:3: error: bad", "==1==ERROR: AddressSanitizer: heap"}) {
    EXPECT_TRUE(IsAlarm(line)) << line;
  }
  for (const char* line : {"", "epoch 3/5 step 69", "0 errors", "errors: 0",
                           "an error may follow", "warned", "123", "---"}) {
    EXPECT_FALSE(IsAlarm(line)) << line;
  }
}

TEST(LaunchConsole, DoesNotBreakAnUnfinishedLine) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  LaunchConsole console(ends[1], ends[1]);
  console.Raw(true, "epoch 1 ...");
  console.Line(true, "[1] warning");
  console.Message("note");
  close(ends[1]);
  char text[200] = {};
  ASSERT_GT(read(ends[0], text, sizeof(text) - 1), 0);
  EXPECT_STREQ(text, "epoch 1 ...\n[1] warning\nlaunch   note\n");
  close(ends[0]);
}

// A block of a program's output ends anywhere.
TEST(LaunchConsole, LinesWaitForTheEndOfALine) {
  int ends[2], other[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(pipe(other), 0);
  LaunchConsole console(ends[1], other[1]);
  console.Raw(false, "12");
  console.Line(false, "[1] 7");
  console.Line(false, "[1] 8");
  console.Line(true,
               "[1] warning");  // another file, whose line is at its start
  EXPECT_LE(console.due(), MonotonicTime::Now() + absl::Seconds(1));
  console.Raw(false, "34\n56\n78");
  EXPECT_EQ(console.due(), MonotonicTime::InfiniteFuture());
  console.Line(false, "[1] 9");
  console.ShowWaiting(MonotonicTime::Now());
  console.Raw(false, "90\n1");
  console.Line(false, "[1] 10");
  console.ShowWaiting(MonotonicTime::Now() + absl::Seconds(2));  // too long
  char text[200] = {};
  ASSERT_GT(read(ends[0], text, sizeof(text) - 1), 0);
  EXPECT_STREQ(text, "1234\n[1] 7\n[1] 8\n56\n7890\n[1] 9\n1\n[1] 10\n");
  char said[200] = {};
  ASSERT_GT(read(other[0], said, sizeof(said) - 1), 0);
  EXPECT_STREQ(said, "[1] warning\n");
  for (int fd : {ends[0], ends[1], other[0], other[1]}) close(fd);
}

TEST(RankOutput, KeepsTheLastLinesAndAllBytes) {
  const std::string path = ::testing::TempDir() + "/rank.err";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  LaunchConsole console(1, 2);
  auto output =
      RankOutput::Open(path, 1, true, RankOutput::Show::kNothing, &console);
  ASSERT_TRUE(output.ok()) << output.status();
  std::string all;
  for (int i = 0; i < 20; ++i) all += "line " + std::to_string(i) + "\n";
  all += "50 %\r100 %";
  ASSERT_EQ(write(ends[1], all.data(), all.size()),
            static_cast<ssize_t>(all.size()));
  close(ends[1]);
  EXPECT_FALSE((*output)->Pump(ends[0]));
  (*output)->Finish();
  EXPECT_EQ((*output)->tail().size(), 12u);
  EXPECT_EQ((*output)->tail().front(), "line 9");
  EXPECT_EQ((*output)->tail().back(), "100 %");
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  EXPECT_EQ(text.str(), all);
  close(ends[0]);
}

TEST(RankOutput, AFileThatCannotBeWrittenIsNamed) {
  LaunchConsole console(1, 2);
  auto output = RankOutput::Open("/no/such/dir/x", 0, false,
                                 RankOutput::Show::kAll, &console);
  EXPECT_THAT(std::string(output.status().message()),
              ::testing::HasSubstr("cannot write /no/such/dir/x"));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
