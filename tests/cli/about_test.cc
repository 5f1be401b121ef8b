// Verbs and flags that tell about models, machine and the binary itself: lint
// and --fail-on, doctor, completion, errors under --json.
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/child.h"

namespace halftone {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Result Halftone(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "tools/halftone");
  return RunProgram(arguments);
}

std::string Temp(const std::string& ending) {
  static int names = 0;
  return absl::StrCat(::testing::TempDir(), "/", getpid(), "-about-", names++,
                      ending);
}

// Of compile, inspect and lint alike; what was asked for is written as ever.
TEST(FailOnFlag, ExitsWithThree) {
  const std::string out =
      absl::StrCat(::testing::TempDir(), "/", getpid(), ".htc");
  const std::vector<std::string> model = {
      "models/mnist_convnet.pbtxt", "--strategy", "models/mnist_o1.pbtxt"};
  for (const char* verb : {"compile", "inspect", "lint"}) {
    std::vector<std::string> words = {verb, "--fail-on",
                                      "standalone>0, cast_bytes>1e9"};
    words.insert(words.end(), model.begin(), model.end());
    if (words[0] == "compile") words.insert(words.end(), {"-o", out});
    EXPECT_EQ(Halftone(words).exit_code(), 0) << verb;
    words[2] = "folded>2, lint:D*";
    const Result failed = Halftone(words);
    EXPECT_EQ(failed.exit_code(), 3) << verb;
    EXPECT_THAT(failed.err, AllOf(StartsWith("fail-on  folded>2: it is 3\n"),
                                  HasSubstr("fail-on  lint:D*: D8: conv1")));
    EXPECT_NE(failed.out, "");
    words[2] = "foldd>2";
    const Result wrong = Halftone(words);
    EXPECT_EQ(wrong.exit_code(), 2) << verb;
    EXPECT_THAT(wrong.err, HasSubstr("nearest: folded"));
  }
  EXPECT_EQ(Halftone({"inspect", out}).exit_code(), 0);
}

// A program that waits for JSON gets it, the person their line.
TEST(JsonFlag, ErrorsAreJsonToo) {
  const std::vector<std::vector<std::string>> cases = {
      {"1", "inspect", "no/such.htc", "--json"},
      {"2", "compile", "models/mnist_convnet.pbtxt", "--json", "--lvl", "O1"},
      {"2", "eval", "--json"}};
  for (std::vector<std::string> words : cases) {
    const int exit_code = std::stoi(words[0]);
    words.erase(words.begin());
    const Result result = Halftone(words);
    EXPECT_EQ(result.exit_code(), exit_code) << words[0];
    EXPECT_THAT(result.err, StartsWith("error    ")) << words[0];
    const json object = json::parse(result.out, nullptr, false);
    ASSERT_TRUE(object.is_object()) << result.out;
    EXPECT_EQ(object["schema"], 1);
    EXPECT_EQ(object["error"]["exit"], exit_code);
    const std::string message = object["error"]["message"];
    EXPECT_THAT(result.err, HasSubstr(message.substr(0, message.find('\n'))));
  }
  EXPECT_EQ(Halftone({"inspect", "no/such.htc"}).out, "");
}

// What bash gets for a half-typed line.
TEST(CompletionVerb, InBash) {
  const auto offered = [](const std::string& line) {
    const Result result = RunProgram(
        {"/bin/bash", "-c",
         absl::StrCat("halftone() { tools/halftone \"$@\"; }\n"
                      "source <(tools/halftone completion bash)\n"
                      "COMP_WORDS=(halftone ",
                      line,
                      ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_halftone\n"
                      "echo \"${COMPREPLY[*]}\"")});
    EXPECT_EQ(result.exit_code(), 0) << result.err;
    return result.out;
  };
  EXPECT_EQ(offered("insp"), "inspect\n");
  EXPECT_EQ(offered("compile --level ''"), "O0 O1 O2 O3\n");
  EXPECT_EQ(offered("launch --ranks 2 ru"), "run\n");
  // What readline makes of --level=O, --set amp.level= and --set amp.lev.
  EXPECT_EQ(offered("compile --level = O"), "O0 O1 O2 O3\n");
  EXPECT_EQ(offered("compile --set amp.level ="), "O0 O1 O2 O3\n");
  EXPECT_EQ(offered("compile --set amp.level = O2"), "O2\n");
  EXPECT_EQ(offered("compile --set amp.lev"), "amp.level=\n");
  EXPECT_EQ(offered("zoo resnet10"), "resnet101\n");
  EXPECT_EQ(offered("inspect models/"), "\n");
}

TEST(CompletionVerb, AManual) {
  const Result page = Halftone({"completion", "man"});
  EXPECT_EQ(page.exit_code(), 0);
  for (const char* part : {".TH HALFTONE 1", ".SS halftone data verify",
                           "\\fB\\-\\-level\\fR", ".SH EXIT STATUS"}) {
    EXPECT_THAT(page.out, HasSubstr(part));
  }
  const Result wrong = Halftone({"completion", "csh"});
  EXPECT_EQ(wrong.exit_code(), 2);
  EXPECT_THAT(wrong.err, HasSubstr("expected bash, zsh, fish or man"));
}

TEST(DoctorVerb, SaysWhatIsHere) {
  const Result result = Halftone({"doctor"});
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("binary"), HasSubstr("loopback"),
                                HasSubstr("compiles for cpu")));
  const json object =
      json::parse(Halftone({"doctor", "--json"}).out, nullptr, false);
  ASSERT_TRUE(object.is_object());
  EXPECT_EQ(object["ok"], true);
}

// The convnet, compiled once.
const std::string& Compiled() {
  static const std::string& path = *new std::string([] {
    const std::string file = Temp(".htc");
    EXPECT_EQ(Halftone({"compile", "models/mnist_convnet.pbtxt", "--strategy",
                        "models/mnist_o1.pbtxt", "-o", file})
                  .exit_code(),
              0);
    return file;
  }());
  return path;
}

// Of flags, of a file, of a compiled model, each with its origin.
TEST(ExplainVerb, KnowsTheStrategyInForce) {
  const Result flags = Halftone({"explain", "strategy", "amp", "--level", "O2",
                                 "--set", "amp.dtype=bf16"});
  EXPECT_THAT(flags.out, ContainsRegex("\namp.level +O2 +--level +O0 "));
  EXPECT_THAT(flags.out, ContainsRegex("\namp.dtype +bf16 +--set +fp16 "));
  EXPECT_THAT(flags.out,
              ContainsRegex("\namp.master_weights +true +level O2 "));
  const Result file = Halftone(
      {"explain", "strategy", "lr", "--strategy", "models/mnist_o1.pbtxt"});
  EXPECT_THAT(file.out,
              ContainsRegex("\nlr.base +0.01 +models/mnist_o1.pbtxt:5 "));
  // What was not chosen has no value.
  EXPECT_THAT(file.out, ContainsRegex("\nlr.step.gamma +- +- +0.1"));
  EXPECT_THAT(Halftone({"explain", Compiled(), "train.epochs"}).out,
              HasSubstr("\nvalue      5, from models/mnist_o1.pbtxt:7\n"));
  const auto of_model =
      json::parse(Halftone({"explain", Compiled(), "strategy", "--json"}).out);
  EXPECT_EQ(of_model["fields"][0]["path"], "amp.level");
  EXPECT_EQ(of_model["fields"][0]["value"], "O1");
  EXPECT_EQ(of_model["fields"][0]["from"], "models/mnist_o1.pbtxt:2");
}

TEST(DiffVerb, WritesAPage) {
  const std::string other = Temp(".htc"), page = Temp(".html");
  ASSERT_EQ(Halftone({"compile", Compiled(), "--black", "matmul", "-o", other})
                .exit_code(),
            0);
  const Result text = Halftone({"diff", Compiled(), other});
  const Result result = Halftone({"diff", Compiled(), other, "--html", page});
  EXPECT_EQ(result.exit_code(), 3) << result.err;
  EXPECT_EQ(result.out, text.out);
  EXPECT_THAT(ReadAll(page), AllOf(StartsWith("<!DOCTYPE html>"),
                                   HasSubstr("~ another precision"),
                                   ::testing::EndsWith("</html>\n")));
}

}  // namespace
}  // namespace halftone
