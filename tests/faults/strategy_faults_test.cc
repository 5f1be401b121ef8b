// Strategies, op lists and the flags that override them: damaged or wrong.
// Every range of every field is in passes/options/check_strategy_test.cc.
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/faults.h"

namespace halftone {
namespace {

using Parts = std::vector<std::string>;

void ExpectNoStrategy(const std::string& strategy, const Parts& says) {
  ExpectRefusedAndNothingWritten({"compile", kConvnet, "--strategy", strategy},
                                 "-o", 1, says);
}

void ExpectNoFlags(const Parts& flags, const Parts& says) {
  Parts command = {"compile", kConvnet, "--strategy", kO1};
  command.insert(command.end(), flags.begin(), flags.end());
  ExpectRefusedAndNothingWritten(command, "-o", 2, says);
}

// A file that should be text, each with how it is refused.
struct Damaged {
  std::string content;
  const char* found;
};
std::vector<Damaged> DamagedTexts() {
  return {{"", "found an empty file"},
          {"\n# nothing\n", "found nothing but blanks and comments"},
          {AllDamages("xxxx")[5].content, "found bytes that are no text"},
          {"[1, 2]", "found JSON or markup"},
          {"\x1f\x8b\x08", "found a gzip archive"},
          {ReadAll(kConvnet), "found a model"},
          {ReadAll(Convnet()), "found a compiled model"}};
}

TEST(StrategyFile, ThatIsNone) {
  ExpectNoStrategy("nowhere.pbtxt",
                   {"nowhere.pbtxt: cannot open: No such file"});
  ExpectNoStrategy("models", {"expected a file, found a directory"});
  for (const Damaged& damaged : DamagedTexts()) {
    ExpectNoStrategy(
        WriteNew("s.pbtxt", damaged.content),
        {"s.pbtxt: expected a strategy (.pbtxt), ", damaged.found});
  }
  const std::string sparse = WriteNew("s.pbtxt", "amp { }");
  ASSERT_EQ(truncate(sparse.c_str(), 1 << 30), 0);
  ExpectNoStrategy(sparse, {"1073741824 bytes, more than the limit of"});
}

TEST(StrategyFile, ThatIsCutOff) {
  ExpectNoStrategy(WriteNew("s.pbtxt", "amp {\n level: \"O1\"\n"),
                   {"s.pbtxt:3:1: ", "found the end of the file; is it whole"});
  ExpectNoStrategy(WriteNew("s.pbtxt", "amp { level: \"O"), {"s.pbtxt:1:"});
}

TEST(OpListsFile, ThatIsNone) {
  const auto strategy = [](const std::string& lists) {
    return WriteNew("s.pbtxt", absl::StrCat("amp {\n level: \"O1\"\n op_lists: "
                                            "\"",
                                            lists, "\" }"));
  };
  ExpectNoStrategy(
      strategy("/nowhere/lists"),
      {"s.pbtxt:3: amp.op_lists: expected paddle, fleetx, torch, "
       "apex or a file that can be read, found /nowhere/lists: cannot open"});
  for (const Damaged& damaged : DamagedTexts()) {
    const std::string lists = WriteNew("lists", damaged.content);
    ExpectNoStrategy(
        strategy(lists),
        {lists + ": expected op lists (op_lists { ... }), ", damaged.found});
  }
  struct Wrong {
    const char* content;
    const char* says;
  };
  for (const Wrong& wrong : {
           Wrong{"op_lists {\n white: \"conv2d\"", "lists:2:"},
           Wrong{"op_lists { whit: \"x\" }",
                 "lists:1:12: unknown field \"whit\" in OpLists; nearest: "
                 "white"},
           Wrong{"op_lists { white: \"tanh\" [black]: \"tanh\" }",
                 "lists:1:27: unknown field \"[black]\" in OpLists"},
           Wrong{"op_lists { unlisted: \"PINK\" }",
                 "unlisted: expected BLACK, GRAY or CLEAR, found \"PINK\""},
           Wrong{"op_lists { white: 3 }",
                 "lists:1:19: expected text in double quotes, found 3"},
       }) {
    ExpectNoStrategy(strategy(WriteNew("lists", wrong.content)), {wrong.says});
  }
}

struct Wrong {
  const char* name;
  const char* text;
  Parts says;
};

class WrongStrategy : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongStrategy, IsRefusedWithPlaceAndRemedy) {
  Parts says = GetParam().says;
  says[0] = "s.pbtxt:" + says[0];
  ExpectNoStrategy(WriteNew("s.pbtxt", GetParam().text), says);
}

INSTANTIATE_TEST_SUITE_P(
    Words, WrongStrategy,
    ::testing::Values(
        Wrong{"field",
              "amp {\n lvl: \"O1\" }",
              {"2:2: unknown field \"lvl\" in Amp; nearest: level"}},
        Wrong{"field_in_brackets",
              "lr {\n [a.base]: 0.5 base: 0.1 }",
              {"2:3: unknown field \"[a.base]\" in LearningRate; nearest: "
               "base"}},
        Wrong{"method",
              "optimizer { nadam { } }",
              {"1:13: unknown field \"nadam\" in Optimizer; nearest: adam"}},
        Wrong{"two_methods",
              "optimizer { sgd { } momentum { } }",
              {"1:", "expected one of sgd and momentum, found both"}},
        Wrong{"level",
              "amp {\n level: \"O7\" }",
              {"2: amp.level: expected O0, O1, O2 or O3, found \"O7\""}},
        Wrong{"without_quotes",
              "amp {\n level: O1 }",
              {"2:9: expected text in double quotes, found O1; write "
               "\"O1\""}},
        Wrong{"dtype",
              "amp {\n dtype: \"fp8\" }",
              {"2: amp.dtype: expected fp16 or bf16, found \"fp8\""}},
        Wrong{"number",
              "train {\n epochs: \"x\" }",
              {"2:10: expected a whole number, found \"x\""}},
        Wrong{"large",
              "train {\n seed: 9223372036854775808 }",
              {"2:8: expected a whole number that its field can hold, found "
               "9223372036854775808"}},
        Wrong{"twice",
              "amp {\n level: \"O1\" level: \"O2\" }",
              {"2:", "specified multiple times", "Keep one"}},
        Wrong{"tail",
              "train { tail: \"pat\" }",
              {"1: train.tail: expected exact or pad or drop, found \"pat\"; "
               "nearest: pad"}}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Lists, WrongStrategy,
    ::testing::Values(
        Wrong{"unknown_op",
              "amp {\n custom_black_list: \"sofmax\" }",
              {"2: amp.custom_black_list: no op is called \"sofmax\"; nearest: "
               "softmax (all: halftone ops)"}},
        Wrong{"op_in_both",
              "amp { custom_white_list: \"matmul\"\n"
              " custom_black_list: \"matmul\" }",
              {"2: amp.custom_black_list: matmul is in custom_white_list, too",
               "s.pbtxt:1); take it out of one"}},
        Wrong{"op_names_in_both",
              "amp { level: \"O1\" custom_white_opnames: \"conv1\"\n"
              " custom_black_opnames: \"conv*\" }",
              {"2: amp.custom_black_opnames: \"conv*\" matches conv1, which "
               "custom_white_opnames matches, too; narrow one of them"}},
        Wrong{"white_pattern_without_match",
              "amp { level: \"O1\"\n custom_white_opnames: \"con\" }",
              {"2: amp.custom_white_opnames: no op matches \"con\"; nearest: "
               "conv1"}},
        Wrong{"black_pattern_without_match",
              "amp { level: \"O1\"\n custom_black_opnames: \"layer9/*\" }",
              {"2: amp.custom_black_opnames: no op matches \"layer9/*\"",
               "halftone inspect"}},
        Wrong{"variable_pattern_without_match",
              "amp { level: \"O1\"\n custom_black_varnames: \"layer9/*\" }",
              {"2: amp.custom_black_varnames: no value matches \"layer9/*\"",
               "halftone inspect"}}),
    [](const auto& info) { return info.param.name; });

// Like any pattern.
TEST(OptimizerGroup, ThatMatchesNothingIsRefused) {
  const Result compiled =
      Halftone({"compile", kConvnet, "--strategy", kO1, "--set",
                "optimizer.group=match: \"bn_*\" weight_decay: 0"});
  EXPECT_EQ(compiled.exit_code(), 2);
  EXPECT_THAT(compiled.err,
              ::testing::HasSubstr("--set: optimizer.group: no parameter "
                                   "matches \"bn_*\""));
}

// Negative, zero, not finite, and what does not go together.
TEST(LossScaling, RefusesWhatNoScaleCanBe) {
  struct Case {
    const char* field;
    const char* value;
    const char* expected;
  };
  for (const Case& c : {
           Case{"init_loss_scaling", "-1", "a number from 1.17549435e-38"},
           Case{"init_loss_scaling", "0", "a number from 1.17549435e-38"},
           Case{"init_loss_scaling", "inf", "a number from 1.17549435e-38"},
           Case{"init_loss_scaling", "nan", "a number from 1.17549435e-38"},
           Case{"incr_ratio", "0.5", "a finite number, 1 or above"},
           Case{"incr_ratio", "nan", "a finite number, 1 or above"},
           Case{"incr_ratio", "inf", "a finite number, 1 or above"},
           Case{"decr_ratio", "0", "a number above 0 and at most 1"},
           Case{"decr_ratio", "-2", "a number above 0 and at most 1"},
           Case{"decr_ratio", "nan", "a number above 0 and at most 1"},
           Case{"incr_every_n_steps", "0", "a whole number above 0"},
           Case{"decr_every_n_nan_or_inf", "-1", "a whole number above 0"},
           Case{"min_loss_scaling", "-1", "a finite number, 0 or above"},
           Case{"min_loss_scaling", "inf", "a finite number, 0 or above"},
           Case{"max_loss_scaling", "nan", "a number, 0 or above"},
       }) {
    const std::string path = absl::StrCat("amp.loss_scaling.", c.field);
    ExpectNoStrategy(
        WriteNew("s.pbtxt", absl::StrCat("amp { level: \"O1\"\n"
                                         " loss_scaling {\n  ",
                                         c.field, ": ", c.value, " } }")),
        {absl::StrCat("s.pbtxt:3: ", path, ": expected ", c.expected),
         absl::StrCat(", found ", c.value)});
    ExpectNoFlags({"--set", absl::StrCat(path, "=", c.value)},
                  {absl::StrCat("--set: ", path, ": expected ", c.expected)});
  }
}

TEST(Flags, ThatOverrideWithWhatCannotBe) {
  ExpectNoFlags({"--loss-scale", "-3"},
                {"--loss-scale: amp.loss_scaling.init_loss_scaling: expected a "
                 "number from 1.17549435e-38 to 3.40282347e+38, found -3"});
  ExpectNoFlags({"--black", "sofmax"}, {"--black: ", "nearest: softmax"});
  ExpectNoFlags({"--white", "matmul", "--black", "matmul"},
                {"--black: amp.custom_black_list: matmul is in "
                 "custom_white_list, too (--white)"});
  ExpectNoFlags({"--black-op", "zz*"}, {"--black-op: ", "matches \"zz*\""});
  ExpectNoFlags({"--set", "amp.levl=O1"}, {"nearest: amp.level"});
  ExpectNoFlags({"--set", "x"}, {"expected path=value, found x"});
  ExpectNoFlags({"--epochs", "0"}, {"expected a whole number above 0"});
  ExpectNoFlags({"--target", "sm_70"}, {"no kernels for it in this build"});
}

}  // namespace
}  // namespace halftone
