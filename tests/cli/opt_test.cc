// halftone opt: passes by name over what the other verbs write.
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/child.h"
#include "tests/support/dumps.h"

namespace halftone {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

std::string Temp(const std::string& name) {
  static int names = 0;
  return absl::StrCat(::testing::TempDir(), "/", getpid(), "-o", names++, name);
}

Result Halftone(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "tools/halftone");
  return RunProgram(arguments);
}

constexpr char kModel[] = "models/mnist_convnet.pbtxt";
constexpr char kStrategy[] = "models/mnist_o1.pbtxt";

// Compiles with a dump after each pass; the dumps in order.
std::vector<std::string> Dumps() {
  const std::string directory = Temp("-dumps");
  const Result result = Halftone(
      {"compile", kModel, "--strategy", kStrategy, "--dump-dir", directory});
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  return DumpsIn(directory);
}

TEST(OptVerb, MakesWhatThePassMadeInTheCompile) {
  const std::vector<std::string> dumps = Dumps();
  ASSERT_GT(dumps.size(), 20u);
  EXPECT_EQ(PassOf(dumps[0]), "source");
  for (size_t i = 1; i < dumps.size(); ++i) {
    const Result result = Halftone({"opt", dumps[i - 1], "--passes",
                                    PassOf(dumps[i]), "--strategy", kStrategy});
    EXPECT_EQ(result.exit_code(), 0) << dumps[i] << ": " << result.err;
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(result.out, ReadAll(dumps[i])) << dumps[i];
  }
}

TEST(OptVerb, AllIsTheCompiler) {
  const std::string compiled = Temp(".htc");
  Halftone({"compile", kModel, "--strategy", kStrategy, "-o", compiled});
  const std::string program = Halftone({"inspect", compiled, "--dump"}).out;
  ASSERT_THAT(program, StartsWith("program \"mnist_convnet\""));
  // With the strategy that the compiled model was made with.
  EXPECT_EQ(Halftone({"opt", "--passes", "all", compiled}).out, program);
  EXPECT_EQ(
      Halftone({"opt", kModel, "--strategy", kStrategy, "--passes",
                "precision,differentiate", "--passes", "parallel,update,lower"})
          .out,
      program);
  // Without passes it is what was read.
  const std::string text = Temp(".ht");
  const Result written = Halftone({"opt", kModel, "-o", text});
  EXPECT_EQ(written.out, "");
  EXPECT_THAT(ReadAll(text), AllOf(StartsWith("program \"mnist_convnet\""),
                                   Not(HasSubstr("cast"))));
  EXPECT_EQ(Halftone({"opt", text}).out, ReadAll(text));
}

// Whose passes are not in a compile's order has found no bug.
TEST(OptVerb, AnotherOrderIsTheUsers) {
  const Result result = Halftone(
      {"opt", kModel, "--level", "O1", "--passes", "lower,differentiate"});
  EXPECT_EQ(result.exit_code(), 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("differentiate runs before lower"),
                                HasSubstr("no value is called loss")));
}

// A pass that meets a program which is not where a compile runs it.
TEST(OptVerb, AnotherPlaceIsTheUsers) {
  const auto made = [](const std::string& passes) {
    const std::string path = Temp(".ht");
    const Result result = Halftone({"opt", kModel, "--strategy", kStrategy,
                                    "--passes", passes, "-o", path});
    EXPECT_EQ(result.exit_code(), 0) << result.err;
    return path;
  };
  const std::string backward = made("precision,differentiate"),
                    updated = made("precision,differentiate,parallel,update"),
                    finished = made("all");
  const struct {
    std::string program, pass, message;
  } kCases[] = {
      {kModel, "clean-up",
       "precision, differentiate, parallel, update run before clean-up"},
      {kModel, "lower", "update run before lower"},
      {kModel, "clean-up.drop-dead", "run before clean-up.drop-dead"},
      {backward, "append-optimizer", "parallel runs before append-optimizer"},
      {backward, "update", "parallel runs before update"},
      {made("precision,differentiate,parallel"), "append-optimizer",
       "other passes of update run before append-optimizer"},
      {updated, "legality", "other passes of lower run before legality"},
      {finished, "precision",
       "precision runs before lower, which the program has behind it"},
      {finished, "shard-optimizer",
       "shard-optimizer runs before legality, which the program"},
  };
  for (const auto& c : kCases) {
    const Result result = Halftone(
        {"opt", c.program, "--strategy", kStrategy, "--passes", c.pass});
    EXPECT_EQ(result.exit_code(), 2) << c.pass << ": " << result.err;
    EXPECT_THAT(result.err, HasSubstr(c.message));
    EXPECT_THAT(result.err, Not(HasSubstr("halftone-bug")));
  }
}

TEST(OptVerb, ReadsStdin) {
  const std::string command = absl::StrCat(
      "tools/halftone opt ", kModel, " --passes assign_precision --level O1 | ",
      "tools/halftone opt - --passes insert_casts --level O1");
  const Result result = RunProgram({"/bin/sh", "-c", command});
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  EXPECT_EQ(result.out, Halftone({"opt", kModel, "--level", "O1", "--passes",
                                  "assign-precision,insert-casts"})
                            .out);
}

TEST(OptVerb, JsonHasTimesOfEachPass) {
  const Result result =
      Halftone({"opt", kModel, "--level", "O1", "--passes",
                "precision,clean-up", "--fetch", "logits", "--json"});
  ASSERT_EQ(result.exit_code(), 0) << result.err;
  const json object = json::parse(result.out);
  EXPECT_EQ(object["schema"], 1);
  EXPECT_THAT(object["program"].get<std::string>(), StartsWith("program "));
  ASSERT_EQ(object["passes"].size(), 4u);
  EXPECT_EQ(object["passes"][1]["name"], "insert-casts");
  EXPECT_EQ(object["passes"][1]["changed"], true);
  const json& group = object["passes"][3];
  EXPECT_EQ(group["name"], "clean-up");
  ASSERT_EQ(group["passes"].size(), 4u);
  for (const json& pass : group["passes"]) {
    EXPECT_THAT(pass["name"].get<std::string>(), StartsWith("clean-up."));
    EXPECT_GE(pass["times"], 1);
    EXPECT_GE(pass["ms"], 0);
  }
}

TEST(OptVerb, ListsEveryPassWithALine) {
  const std::string list = Halftone({"opt", "--list"}).out;
  const json object = json::parse(Halftone({"opt", "--list", "--json"}).out);
  EXPECT_GT(object["passes"].size(), 25u);
  for (const json& pass : object["passes"]) {
    EXPECT_THAT(list, HasSubstr(pass["name"].get<std::string>() + " "));
    EXPECT_THAT(list, HasSubstr("  " + pass["doc"].get<std::string>() + "\n"));
    EXPECT_THAT(pass["doc"].get<std::string>(), Not(IsEmpty()));
  }
}

TEST(OptVerb, DumpsAndHeedsItsFlags) {
  const std::string directory = Temp("-dumps");
  const Result result = Halftone({"opt", kModel, "--level", "O1", "--passes",
                                  "precision,clean-up", "--dump-dir", directory,
                                  "--dump-after", "clean-up.*"});
  EXPECT_EQ(result.exit_code(), 0) << result.err;
  EXPECT_TRUE(
      std::filesystem::exists(directory + "/004.clean-up.fold-updates.txt"));
  EXPECT_FALSE(std::filesystem::exists(directory + "/000.source.txt"));
}

struct Wrong {
  std::vector<std::string> arguments;
  int exit_code;
  const char* message;
};

TEST(OptVerb, SaysWhatIsWrong) {
  const std::string text = Temp(".ht");
  Halftone({"opt", kModel, "-o", text});
  const std::string broken = Temp(".ht");
  ASSERT_EQ(
      RunProgram({"/bin/sh", "-c",
                  absl::StrCat("sed 's/relu(/rellu(/' ", text, " > ", broken)})
          .exit_code(),
      0);
  const Wrong wrongs[] = {
      {{"opt", text, "--passes", "insert-cast"},
       2,
       "no pass is called \"insert-cast\"; nearest: insert-casts"},
      {{"opt", text, "--passes", "fold_casts"},
       2,
       "no pass is called \"fold_casts\"; nearest: clean-up.fold-casts"},
      {{"opt"}, 2, "expected a program, or --list"},
      {{"opt", broken, "--passes", "fuse"}, 1, "an op; nearest: relu"},
      {{"opt", "models/digits", "--passes", "fuse"}, 1, "a directory without"},
      {{"opt", text, "--strategy", kStrategy, "--passes", "append-backward"},
       2,
       "there is no gradient seed: scale-loss comes first (pass "
       "append-backward)"},
      {{"opt", text, "--level", "O1", "--passes", "insert-casts,keep-outputs"},
       2,
       ") has no precision: assign-precision comes first (pass insert-casts)"},
      {{"opt", text, "--passes", "fuse", "--target", "sm_11"}, 2, "sm_11"},
      {{"opt", text, "--passes", "keep-taps", "--fetch", "logit"},
       2,
       "nearest: logits"},
  };
  for (const Wrong& wrong : wrongs) {
    const Result result = Halftone(wrong.arguments);
    EXPECT_EQ(result.exit_code(), wrong.exit_code)
        << absl::StrCat(wrong.message, "\n", result.err);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(wrong.message));
  }
}

}  // namespace
}  // namespace halftone
