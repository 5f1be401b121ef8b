// A case for each kind of flag; what the verbs' own say is held by docs/cli.md
// and tests/cli.
#include "tools/common/command_line.h"

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Words = std::vector<std::string>;

struct Line {
  Line() : parser("halftone"), go(parser.program().AddVerb("go", "", "Goes.")) {
    parser.program().SetVersion([] { return "halftone 7"; });
    go.SetRun([this] { ran = true; });
  }

  // The error's message, or what is to be shown.
  std::string Parse(const Words& words) {
    const absl::StatusOr<std::string> shown = parser.Parse(words);
    if (shown.ok()) return *shown;
    EXPECT_EQ(ExitCodeOf(shown.status()), ExitCode::kUsage);
    EXPECT_FALSE(ran);
    return std::string(shown.status().message());
  }

  CommandLine parser;
  Verb go;
  bool ran = false;
};

TEST(CommandLine, EachKindTakesItsWords) {
  Line line;
  std::string word = "w", file;
  int count = 1;
  int64_t size = 2;
  double rate = 3;
  Words many, listed, taken;
  bool on = false, off = true;
  line.go.AddOption("word", &word, "");
  line.go.AddOption("--count", &count, "");
  line.go.AddOption("--size,-s", &size, "");
  line.go.AddOption("--rate", &rate, "");
  line.go.AddOption("--many", &many, "");
  line.go.AddOption("--listed", &listed, "").WithCommas();
  const auto take = [&](const std::string& value) {
    taken.push_back(value);
    return absl::OkStatus();
  };
  line.go.AddOption("--set", take, "").UpToWords(1000);
  line.go.AddIgnored(
      "--old", [&] { taken.push_back("old"); }, "");
  line.go.AddSwitch("--on", &on, "");
  line.go.AddSwitch("!--off", &off, "");
  line.go.AddSwitch("--file", &file, "");
  line.go.AddSwitch(
      "--seen", [&] { taken.push_back("seen"); }, "");
  EXPECT_EQ(line.Parse({"go",  "--count=4", "-s",    "99999999999", "--rate",
                        "0.5", "--many",    "a",     "b",           "--many",
                        "c",   "--listed",  "d,e",   "word",        "--set",
                        "f",   "g",         "--set", "h",           "--old",
                        "i",   "--on",      "--off", "--file=j",    "--seen"}),
            "");
  EXPECT_TRUE(line.ran);
  EXPECT_EQ(word, "word");
  EXPECT_EQ(count, 4);
  EXPECT_EQ(size, 99999999999);
  EXPECT_EQ(rate, 0.5);
  EXPECT_THAT(many, ElementsAre("a", "b", "c"));
  EXPECT_THAT(listed, ElementsAre("d", "e"));
  EXPECT_THAT(taken, ElementsAre("f", "g", "h", "old", "seen"));
  EXPECT_TRUE(on);
  EXPECT_FALSE(off);
  EXPECT_EQ(file, "j");
}

std::string Failure(const Words& words) {
  Line line;
  std::string word, a, b;
  int count = 1;
  line.go.AddOption("word", &word, "").Required();
  line.go.AddOption("--count", &count, "").InRange(1, 9);
  line.go.AddOption(
      "--set",
      [](const std::string& set) { return UsageError("--set: no ", set); }, "");
  const Flag first = line.go.AddOption("--a", &a, "");
  line.go.AddOption("--b", &b, "").Needs(first);
  line.go.AddOption("--c", &b, "").Excludes(first);
  return line.Parse(words);
}

TEST(CommandLine, ErrorsNameTheVerbAndTheWord) {
  const std::string see = " (see halftone go --help)";
  EXPECT_EQ(Failure({}), "no verb; see halftone --help");
  EXPECT_THAT(Failure({"og"}), HasSubstr("\"og\"; nearest: go"));
  EXPECT_EQ(Failure({"go"}), "go: word is required" + see);
  EXPECT_EQ(Failure({"go", "w", "--cuont", "3"}),
            "go: no flag is called --cuont; nearest: --count" + see);
  EXPECT_EQ(Failure({"go", "w", "--count", "10"}),
            "go: --count: Value 10 not in range 1 to 9" + see);
  EXPECT_EQ(Failure({"go", "w", "--set", "x"}), "go: --set: no x" + see);
  EXPECT_EQ(Failure({"go", "w", "--b", "x"}), "go: --b requires --a" + see);
  EXPECT_EQ(Failure({"go", "w", "--a", "x", "--c", "y"}),
            "go: --a excludes --c" + see);
}

TEST(CommandLine, ErrorsNameAVerbBelowAnother) {
  const auto failure = [](const Words& words) {
    Line line;
    Verb below = line.go.AddVerb("far", "goes far", "");
    below.AddOption(
        "--count", [](const std::string&) { return absl::OkStatus(); }, "");
    return line.Parse(words);
  };
  EXPECT_EQ(failure({"go", "far", "--cuont", "3"}),
            "go far: no flag is called --cuont; nearest: --count (see halftone "
            "go far --help)");
  EXPECT_EQ(failure({"go", "far", "--count"}),
            "go far: --count: 1 required TEXT missing (see halftone go far "
            "--help)");
}

TEST(CommandLine, HelpAndVersionRunNothing) {
  Line line;
  EXPECT_THAT(line.Parse({"go", "--help"}), HasSubstr("Goes."));
  EXPECT_EQ(line.Parse({"--version"}), "halftone 7\n");
  EXPECT_THAT(line.Parse({"go", "--hlp", "--help"}), HasSubstr("--hlp"));
  EXPECT_FALSE(line.ran);
}

TEST(CommandLine, ACommandKeepsItsFlags) {
  Line line;
  bool on = false;
  line.go.AddSwitch("--on", &on, "");
  line.go.TakeCommand();
  EXPECT_EQ(line.Parse({"go", "--on", "run", "--off", "--on"}), "");
  EXPECT_TRUE(on);
  EXPECT_THAT(line.go.command(), ElementsAre("run", "--off", "--on"));
}

TEST(CommandLine, AProgramWithoutVerbs) {
  int count = 1;
  CommandLine line("measure");
  line.program().AddOption("--count", &count, "");
  EXPECT_TRUE(line.Parse({}).ok());
  EXPECT_TRUE(line.Parse({"--count", "2"}).ok());
  EXPECT_EQ(count, 2);
  EXPECT_THAT(line.Parse({"--cuont", "2"}).status().message(),
              HasSubstr("--cuont"));
}

}  // namespace
}  // namespace tools
}  // namespace halftone
