#include "tools/report/completion.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace halftone {
namespace tools {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

VerbDoc Program() {
  VerbDoc compile = {"compile", "to a compiled model", "examples:\n  a -b\n"};
  compile.flags = {{{"-h", "--help"}, "", "", false},
                   {{}, "model", "a file"},
                   {{"--level"}, "", "O0 | O1 | O2; default: O0"},
                   {{"--set"}, "", "path=value"},
                   {{"--json"}, "", "one object", false},
                   {{"-o", "--out"}, "", "where it goes"}};
  VerbDoc ckpt = {"ckpt", "checkpoints", ""};
  ckpt.verbs = {{"ls", "list"}, {"verify", "verify"}};
  VerbDoc launch = {"launch", "one process per rank", ""};
  launch.takes_command = true;
  launch.flags = {{{"--ranks"}, "", "N"}};
  VerbDoc run = {"run", "trains", ""};
  run.flags = {{{"--level"}, "", "O0 | O1 | O2; default: O0"}};
  VerbDoc zoo = {"zoo", "models", ""};
  VerbDoc program = {"halftone", "", "examples"};
  program.verbs = {compile, ckpt, launch, run, zoo};
  return program;
}

std::vector<std::string> Offered(const std::vector<std::string>& words) {
  std::vector<std::string> offered;
  for (const Candidate& candidate : CandidatesFor(Program(), words)) {
    offered.push_back(candidate.word);
  }
  return offered;
}

TEST(Completion, VerbsAndThoseBelow) {
  EXPECT_THAT(Offered({""}),
              ElementsAre("compile", "ckpt", "launch", "run", "zoo"));
  EXPECT_THAT(Offered({"c"}), ElementsAre("compile", "ckpt"));
  EXPECT_THAT(Offered({"ckpt", ""}), ElementsAre("ls", "verify"));
  EXPECT_THAT(Offered({"launch", "--ranks", ""}), IsEmpty());
  EXPECT_THAT(Offered({"launch", "--ranks", "2", ""}), ElementsAre("run"));
  EXPECT_THAT(Offered({}), IsEmpty());
}

TEST(Completion, FlagsAndWhatTheyTake) {
  EXPECT_THAT(Offered({"compile", "--"}),
              ElementsAre("--help", "--level", "--set", "--json", "--out"));
  EXPECT_THAT(Offered({"compile", "m.pbtxt", "--le"}), ElementsAre("--level"));
  EXPECT_THAT(Offered({"compile", "--level", ""}),
              ElementsAre("O0", "O1", "O2"));
  EXPECT_THAT(Offered({"compile", "--level=O1"}), ElementsAre("--level=O1"));
  EXPECT_THAT(Offered({"compile", "--out", ""}), IsEmpty());  // a file
  EXPECT_THAT(Offered({"compile", "--json", ""}), IsEmpty());
  EXPECT_THAT(Offered({"launch", "run", "--level", "O2"}), ElementsAre("O2"));
}

TEST(Completion, NamesOfFieldsModelsAndOps) {
  EXPECT_THAT(Offered({"compile", "--set", "amp.lev"}),
              ElementsAre("amp.level="));
  EXPECT_THAT(Offered({"compile", "--set", "amp.level=O"}),
              ElementsAre("amp.level=O0", "amp.level=O1", "amp.level=O2",
                          "amp.level=O3"));
  EXPECT_THAT(Offered({"zoo", "resnet5"}), ElementsAre("resnet50"));
}

TEST(Completion, WordsThatAHelpLists) {
  EXPECT_THAT(ListedWords("pre | post; default: pre"),
              ElementsAre("pre", "post"));
  EXPECT_THAT(ListedWords("of BERT: classification (default) | pretraining"),
              ElementsAre("classification", "pretraining"));
  EXPECT_THAT(ListedWords("train | eval; default: train, or eval where\nx | y"),
              ElementsAre("train", "eval"));
  EXPECT_THAT(ListedWords("safetensors (parameters) | pdmodel | onnx; default"),
              ElementsAre("safetensors", "pdmodel", "onnx"));
  EXPECT_THAT(ListedWords("isolated | chained: measure that alone"),
              ElementsAre("isolated", "chained"));
  EXPECT_THAT(ListedWords("of a U-Net: batch (default) | group, of 8 groups"),
              ElementsAre("batch", "group"));
  EXPECT_THAT(ListedWords("500 (steps) | 10m | 1e (epochs, default) | never"),
              ElementsAre("never"));
  EXPECT_THAT(ListedWords("ranks here: N | auto"), ElementsAre("auto"));
  EXPECT_THAT(ListedWords("a file"), IsEmpty());
  EXPECT_THAT(ListedWords(""), IsEmpty());
}

TEST(Completion, ScriptsOfShellsThatAreKnown) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const auto script = CompletionScript(shell);
    ASSERT_TRUE(script.ok());
    EXPECT_THAT(*script, HasSubstr("halftone completion --words --"));
  }
  EXPECT_THAT(std::string(CompletionScript("bsh").status().message()),
              HasSubstr("found \"bsh\"; nearest: bash"));
}

TEST(ManPage, HasEveryVerbFlagAndCode) {
  const std::string page = ManPage(Program());
  EXPECT_THAT(page, HasSubstr(".TH HALFTONE 1"));
  EXPECT_THAT(page, HasSubstr(".SS halftone ckpt verify\nverify.\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n\\fB\\-o, \\-\\-out\\fR\nwhere it goes\n"));
  EXPECT_THAT(page, HasSubstr("  a \\-b\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n\\fB9\\fR\n"));
}

}  // namespace
}  // namespace tools
}  // namespace halftone
