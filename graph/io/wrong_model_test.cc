// Models that are wrong, each in one way: the place and the reason are named.
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/io/model_reader.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Lines 1 to 10 of every model here unless it is given as a whole.
constexpr char kModel[] = R"(name: "tiny" format: 1
feed { name: "image" dtype: F32 dims: [-1, 4] }
feed { name: "label" dtype: I64 dims: [-1] }
param { name: "w" dims: [4, 3] init { constant: 0.5 } }
op { type: "matmul" name: "fc" in { slot: "X" var: "image" } in { slot: "Y" var: "w" } out { slot: "Out" var: "logits" } }
op { type: "softmax_with_cross_entropy" in { slot: "Logits" var: "logits" } in { slot: "Label" var: "label" } out { slot: "Loss" var: "ce" } }
op { type: "mean" in { slot: "X" var: "ce" } out { slot: "Out" var: "loss" } }
op { type: "correct_count" in { slot: "X" var: "logits" } in { slot: "Label" var: "label" } out { slot: "Out" var: "correct" } }
loss { var: "loss" mean_over: "ce" }
metric { name: "top1" var: "correct" over: "label" }
)";

absl::StatusOr<std::unique_ptr<Program>> Build(absl::string_view text) {
  HT_ASSIGN_OR_RETURN(const ModelFile file, ParseModel(text, "m.pbtxt"));
  return BuildProgram(file);
}

// An edit of kModel, and what the error says.
struct Wrong {
  const char* from;
  const char* to;
  const char* place;  // "m.pbtxt:5" or so
  std::vector<std::string> says;
};

class WrongModelTest : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongModelTest, IsRefusedWithPlaceAndReason) {
  const Wrong& wrong = GetParam();
  const std::string text =
      absl::StrReplaceAll(kModel, {{wrong.from, wrong.to}});
  ASSERT_NE(text, kModel) << wrong.from;
  const auto program = Build(text);
  ASSERT_FALSE(program.ok()) << Print(**program);
  EXPECT_EQ(ExitCodeOf(program.status()), ExitCode::kModel);
  const std::string message(program.status().message());
  EXPECT_EQ(message.substr(0, strlen(wrong.place)), wrong.place) << message;
  for (const std::string& part : wrong.says) {
    EXPECT_THAT(message, HasSubstr(part));
  }
}

TEST(WrongModel, ABinaryNameThatIsNoUtf8) {
  auto file = ParseModel(kModel, "m.pbtxt");
  ASSERT_TRUE(file.ok()) << file.status();
  file->model->mutable_param(0)->set_name("w\xff");
  const auto program = [&]() -> absl::StatusOr<std::unique_ptr<Program>> {
    HT_ASSIGN_OR_RETURN(const ModelFile binary,
                        ParseModel(file->model->SerializeAsString(), "m.pb"));
    return BuildProgram(binary);
  }();
  EXPECT_EQ(ExitCodeOf(program.status()), ExitCode::kModel);
  EXPECT_THAT(std::string(program.status().message()),
              HasSubstr("param w\xff: its name is not UTF-8"));
}

INSTANTIATE_TEST_SUITE_P(
    Files, WrongModelTest,
    ::testing::Values(
        Wrong{"feed {",
              "feeed {",
              "m.pbtxt:2:1",
              {"unknown field \"feeed\" in Model", "nearest: feed"}},
        Wrong{"slot: \"Y\"",
              "slott: \"Y\"",
              "m.pbtxt:5:67",
              {"unknown field \"slott\" in SlotVars", "nearest: slot"}},
        Wrong{"dtype: I64",
              "dtype: INT64",
              "m.pbtxt:3:",
              {"unknown dtype INT64", "expected one of F32 F16"}},
        Wrong{"name: \"tiny\"",
              "name: \"tiny\" name: \"x\"",
              "m.pbtxt:1:",
              {"specified multiple times"}},
        Wrong{"[4, 3]", "[4, 3", "m.pbtxt:4:", {"expected \",\", found init"}},
        Wrong{"format: 1",
              "format: 2",
              "m.pbtxt: ",
              {"expected format 1", "found 2", "newer version"}},
        Wrong{"format: 1", "format: 0", "m.pbtxt: ", {"found 0"}}));

INSTANTIATE_TEST_SUITE_P(
    Ops, WrongModelTest,
    ::testing::Values(
        Wrong{"\"matmul\"",
              "\"matmull\"",
              "m.pbtxt:5: ",
              {"fc (matmull)", "unknown op matmull", "nearest: matmul"}},
        Wrong{"\"matmul\"", "\"\"", "m.pbtxt:5: ", {"expected a type"}},
        Wrong{"slot: \"Logits\"",
              "slot: \"Logit\"",
              "m.pbtxt:6: ",
              {"no input slot Logit", "nearest: Logits"}},
        Wrong{"slot: \"Loss\"",
              "slot: \"Los\"",
              "m.pbtxt:6: ",
              {"no output slot Los", "nearest: Loss"}},
        Wrong{"out { slot: \"Loss\"",
              "attr { name: \"ignore_idx\" i: 1 } out { slot: \"Loss\"",
              "m.pbtxt:6: ",
              {"no attribute ignore_idx", "nearest: ignore_index"}},
        Wrong{"out { slot: \"Loss\"",
              "attr { name: \"axis\" s: \"a\" } out { slot: \"Loss\"",
              "m.pbtxt:6: ",
              {"attribute axis", "expected int", "string"}},
        Wrong{"out { slot: \"Loss\"",
              "attr { name: \"axis\" i: 1 f: 2 } out { slot: \"Loss\"",
              "m.pbtxt:6: ",
              {"attribute axis", "expected one of i b f s"}},
        Wrong{"out { slot: \"Loss\"",
              "attr { name: \"axis\" i: -1 } attr { name: \"axis\" i: -1 } out "
              "{ slot: \"Loss\"",
              "m.pbtxt:6: ",
              {"attribute axis is given twice"}},
        Wrong{"in { slot: \"Y\" var: \"w\" }",
              "",
              "m.pbtxt:5: ",
              {"slot Y", "expected one value, found nothing"}},
        Wrong{"var: \"w\"",
              "var: \"w\" var: \"w\"",
              "m.pbtxt:5: ",
              {"slot Y", "expected one value, found 2"}},
        Wrong{"in { slot: \"Y\" var: \"w\" }",
              "in { slot: \"Y\" var: \"w\" } in { slot: \"Y\" var: \"w\" }",
              "m.pbtxt:5: ",
              {"slot Y is given twice"}},
        Wrong{"in { slot: \"Y\" var: \"w\" }",
              "in { slot: \"Y\" }",
              "m.pbtxt:5: ",
              {"slot Y", "expected var"}},
        Wrong{"dims: [4, 3]",
              "dims: [5, 3]",
              "m.pbtxt:5: ",
              {"fc (matmul)", "expected", "found f32[5,3]"}},
        Wrong{"dtype: I64",
              "dtype: F32",
              "m.pbtxt:6: ",
              {"slot Label", "expected i64", "found f32[B]"}},
        Wrong{"op { type: \"mean\"",
              "op { name: \"fc\" type: \"mean\"",
              "m.pbtxt:7: ",
              {"two ops are called fc", "in line 5"}}));

INSTANTIATE_TEST_SUITE_P(
    Graph, WrongModelTest,
    ::testing::Values(
        Wrong{"slot: \"X\" var: \"ce\"",
              "slot: \"X\" var: \"cee\"",
              "m.pbtxt:7: ",
              {"slot X", "nothing defines \"cee\"", "nearest: ce"}},
        Wrong{"slot: \"X\" var: \"image\"",
              "slot: \"X\" var: \"loss\"",
              "m.pbtxt:5: ",
              {"without cycles", "fc -> ce -> loss -> fc"}},
        Wrong{"slot: \"X\" var: \"image\"",
              "slot: \"X\" var: \"logits\"",
              "m.pbtxt:5: ",
              {"without cycles", "fc -> fc"}},
        Wrong{"slot: \"Out\" var: \"loss\"",
              "slot: \"Out\" var: \"ce\"",
              "m.pbtxt:7: ",
              {"two ops are called ce", "in line 6"}},
        Wrong{"op { type: \"mean\" in { slot: \"X\" var: \"ce\" } out { slot: "
              "\"Out\" var: \"loss\"",
              "op { type: \"mean\" name: \"m\" in { slot: \"X\" var: \"ce\" } "
              "out { slot: \"Out\" var: \"ce\"",
              "m.pbtxt:7: ",
              {"two definitions of ce", "by op ce in line 6", "rename one"}},
        Wrong{"var: \"loss\" }",
              "var: \"image\" }",
              "m.pbtxt:7: ",
              {"two definitions of image", "rename one"}},
        Wrong{"var: \"loss\" }",
              "var: \"@loss\" }",
              "m.pbtxt:7: ",
              {"begin with @"}},
        Wrong{"param { name: \"w\"",
              "param { name: \"image\"",
              "m.pbtxt:4: ",
              {"param image", "two definitions of image"}},
        Wrong{"param { name: \"w\"",
              "param { name: \"@seed\"",
              "m.pbtxt:4: ",
              {"begin with @"}},
        Wrong{"param { name: \"w\"",
              "param { name: \"\"",
              "m.pbtxt:4: ",
              {"its name is empty"}},
        // A checkpoint's header and every report are JSON, which is UTF-8.
        Wrong{"param { name: \"w\"",
              "param { name: \"w\\377\"",
              "m.pbtxt:4: ",
              {"param w\xff: its name is not UTF-8"}},
        Wrong{"param { name: \"w\"",
              "param { name: \"w\xc0\x80\"",
              "m.pbtxt:4: ",
              {"param w\xc0\x80: its name is not UTF-8"}},
        Wrong{"feed { name: \"label\"",
              "feed { name: \"\xed\xa0\x80\"",
              "m.pbtxt:3: ",
              {": its name is not UTF-8"}},
        Wrong{"var: \"logits\" } }\nop { type: \"softmax",
              "var: \"logits\\376\" } }\nop { type: \"softmax",
              "m.pbtxt:5: ",
              {"slot Out: the value logits\xfe: its name is not UTF-8"}},
        Wrong{"metric { name: \"top1\"",
              "metric { name: \"loss\"",
              "m.pbtxt:10: ",
              {"metric loss: reports of a run have the loss", "rename it"}},
        Wrong{"metric { name: \"top1\"",
              "metric { name: \"top\\201\"",
              "m.pbtxt:10: ",
              {"metric top\x81: its name is not UTF-8"}},
        Wrong{"name: \"tiny\"",
              "name: \"tin\\377\"",
              "m.pbtxt: ",
              {"the model's name tin\xff is not UTF-8"}},
        Wrong{"name: \"label\"",
              "name: \"la\\nbel\"",
              "m.pbtxt:3: ",
              {"control characters"}}));

INSTANTIATE_TEST_SUITE_P(
    Declarations, WrongModelTest,
    ::testing::Values(
        Wrong{"dims: [-1, 4]",
              "dims: [4, -1]",
              "m.pbtxt:2: ",
              {"feed image", "expected 1 or more", "found -1"}},
        Wrong{"dims: [-1, 4]",
              "dims: [-1, 1099511627776, 1099511627776]",
              "m.pbtxt:2: ",
              {"more than 2^50 elements"}},
        Wrong{"dims: [4, 3]",
              "dims: [-1, 3]",
              "m.pbtxt:4: ",
              {"param w", "only feeds have a batch"}},
        Wrong{"dims: [4, 3]", "dims: [4, 0]", "m.pbtxt:4: ", {"found 0"}},
        Wrong{"dims: [4, 3]",
              "dtype: F16 dims: [4, 3]",
              "m.pbtxt:4: ",
              {"expected F32, found f16"}},
        Wrong{"dims: [4, 3]",
              "dtype: I64 dims: [4, 3]",
              "m.pbtxt:4: ",
              {"trainable: false"}},
        Wrong{"init { constant: 0.5 }",
              "",
              "m.pbtxt:4: ",
              {"expected an initialiser, found none"}},
        Wrong{"init { constant: 0.5 }",
              "init { constant: nan }",
              "m.pbtxt:4: ",
              {"expected finite numbers of f32, found nan"}},
        Wrong{"init { constant: 0.5 }",
              "init { normal { std: 1e39 } }",
              "m.pbtxt:4: ",
              {"found 1e+39"}},
        Wrong{"init { constant: 0.5 }",
              "init { uniform { } }",
              "m.pbtxt:4: ",
              {"expected bound, or low and high, found neither"}},
        Wrong{"dims: [4, 3] init { constant: 0.5 }",
              "dims: [12] init { kaiming_normal { } }",
              "m.pbtxt:4: ",
              {"expected two dims or more"}},
        Wrong{"loss { var: \"loss\"",
              "loss { var: \"los\"",
              "m.pbtxt:9: ",
              {"no value is called \"los\"", "nearest: loss"}},
        Wrong{"loss { var: \"loss\"",
              "loss { ",
              "m.pbtxt:9: ",
              {"expected a value's name"}},
        Wrong{"loss { var: \"loss\"",
              "loss { var: \"ce\"",
              "m.pbtxt:9: ",
              {"expected one element, found ce : f32[B]"}},
        Wrong{"loss { var: \"loss\"",
              "loss { var: \"correct\"",
              "m.pbtxt:9: ",
              {"expected a float result"}},
        Wrong{"mean_over: \"ce\"", "", "m.pbtxt:9: ", {"expected mean_over"}},
        Wrong{"mean_over: \"ce\"",
              "mean_over: \"ce\" mask: \"label\"",
              "m.pbtxt:9: ",
              {"mask: expected a float value"}},
        Wrong{"over: \"label\"",
              "over: \"lable\"",
              "m.pbtxt:10: ",
              {"metric top1: over", "nearest: label"}},
        Wrong{"var: \"correct\" over",
              "var: \"ce\" over",
              "m.pbtxt:10: ",
              {"metric top1", "expected one element"}}));

TEST(WrongModelTest, WithoutOpsOrOutputs) {
  EXPECT_THAT(std::string(Build("name: \"x\"").status().message()),
              HasSubstr("expected at least one op"));
  EXPECT_THAT(
      std::string(Build("feed { name: \"x\" dims: [-1] } op { type: \"relu\" "
                        "in { slot: \"X\" "
                        "var: \"x\" } out { slot: \"Out\" var: \"y\" } }")
                      .status()
                      .message()),
      HasSubstr("the model computes nothing"));
}

TEST(WrongModelTest, RunningStatisticsAreStats) {
  const auto program = Build(R"(feed { name: "x" dims: [-1, 2, 3, 3] }
param { name: "p" dims: [2] init { constant: 1 } }
op { type: "batch_norm" in { slot: "X" var: "x" } in { slot: "Scale" var: "p" } in { slot: "Bias" var: "p" }
     in { slot: "Mean" var: "p" } in { slot: "Variance" var: "p" } out { slot: "Y" var: "y" } }
output: "y")");
  EXPECT_THAT(std::string(program.status().message()),
              AllOf(HasSubstr("m.pbtxt:3: y (batch_norm): slot Mean"),
                    HasSubstr("declare it with stat")));
}

TEST(WrongModelTest, EveryTruncationOfABinaryModelIsHandled) {
  const std::string bytes = ParseModel(kModel, "m")->model->SerializeAsString();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto file = ParseModel(bytes.substr(0, size), "m.pb");
    if (!file.ok()) {
      EXPECT_EQ(ExitCodeOf(file.status()), ExitCode::kModel);
    } else {
      (void)BuildProgram(*file);
    }
  }
}

// ---- Denominators.

// A mean and a sum divided by DIVISOR.
constexpr char kTwoMeans[] = R"(feed { name: "x" dims: [-1, 4] }
feed { name: "m" dims: [-1, 4] }
param { name: "w" dims: [4] init { constant: 0.5 } }
op { type: "elementwise_mul" in { slot: "X" var: "x" } in { slot: "Y" var: "w" } out { slot: "Out" var: "y" } }
op { type: "mean" in { slot: "X" var: "y" } out { slot: "Out" var: "a" } }
op { type: "elementwise_mul" in { slot: "X" var: "y" } in { slot: "Y" var: "m" } out { slot: "Out" var: "kept" } }
op { type: "reduce_sum" in { slot: "X" var: "kept" } out { slot: "Out" var: "total" } }
op { type: "reduce_sum" in { slot: "X" var: "m" } out { slot: "Out" var: "n" } }
op { type: "reduce_max" in { slot: "X" var: "m" } out { slot: "Out" var: "most" } }
op { type: "reduce_sum" in { slot: "X" var: "w" } out { slot: "Out" var: "weights" } }
op { type: "elementwise_div" in { slot: "X" var: "m" } in { slot: "Y" var: "most" } out { slot: "Out" var: "shares" } }
op { type: "reduce_sum" in { slot: "X" var: "shares" } out { slot: "Out" var: "n2" } }
op { type: "fill_constant" out { slot: "Out" var: "two" } attr { name: "shape" ints: [1] } attr { name: "value" f: 2 } }
op { type: "elementwise_max" in { slot: "X" var: "n" } in { slot: "Y" var: "two" } out { slot: "Out" var: "some" } }
op { type: "elementwise_div" in { slot: "X" var: "total" } in { slot: "Y" var: "DIVISOR" } out { slot: "Out" var: "b" } }
op { type: "elementwise_add" in { slot: "X" var: "a" } in { slot: "Y" var: "b" } out { slot: "Out" var: "loss" } }
loss { var: "loss" mean_over: "y" DENOMINATORS }
)";

struct WrongDenominator {
  const char* divisor;
  const char* denominators;
  const char* says;
};

TEST(DenominatorTest, ErrorsSayWhatIsWrong) {
  const auto build = [](absl::string_view divisor, absl::string_view text) {
    return Build(absl::StrReplaceAll(
        kTwoMeans, {{"DIVISOR", divisor}, {"DENOMINATORS", text}}));
  };
  for (const char* const good : {"n", "some"}) {
    const auto program =
        build(good, absl::StrCat("denominator: \"", good, "\""));
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_THAT((*program)->loss.denominators, testing::ElementsAre(good));
  }
  const WrongDenominator kWrong[] = {
      {"n", "denominator: \"nn\"", "no value is called \"nn\"; nearest: n"},
      {"n", "denominator: \"n\" denominator: \"n\"", "n is given twice"},
      {"n", "denominator: \"n\" mask: \"m\"",
       "expected mask or denominator, found both; leave mask out"},
      {"n", "denominator: \"m\"",
       "m: expected floats of one element, found f32[B,4]; name the sum"},
      {"most", "denominator: \"most\"",
       "most is made by most (reduce_max): what ranks have of it does not add "
       "up to that of one device; expected reduce_sum"},
      {"n2", "denominator: \"n2\"",
       "n2 is made by most (reduce_max) and then a sum"},
      {"weights", "denominator: \"weights\"",
       "weights is made of w, a parameter; expected what is made of feeds"},
      {"two", "denominator: \"two\"",
       "two is made of no sum over samples, so it is the same on all ranks"},
      {"some", "denominator: \"n\"",
       "n is read by some (elementwise_max); expected divisions by it alone"},
      {"two", "denominator: \"n\"",
       "n is nothing that the loss divides by; leave it out"},
  };
  for (const WrongDenominator& wrong : kWrong) {
    const auto program = build(wrong.divisor, wrong.denominators);
    ASSERT_FALSE(program.ok()) << wrong.says;
    EXPECT_EQ(ExitCodeOf(program.status()), ExitCode::kModel);
    const std::string message(program.status().message());
    EXPECT_THAT(message, testing::StartsWith("m.pbtxt:17: loss: "));
    EXPECT_THAT(message, HasSubstr(wrong.says));
  }
}

TEST(WrongModelTest, UnknownFieldsOfABinaryModel) {
  // Field 15, a varint.
  const std::string bytes =
      ParseModel(kModel, "m")->model->SerializeAsString() + "\x78\x01";
  EXPECT_THAT(std::string(ParseModel(bytes, "m.pb").status().message()),
              HasSubstr("fields that this version of Halftone does not know"));
}

TEST(WrongModelTest, AClaimOfAGigabyteIsRefusedAtOnce) {
  // `op`, 1 GB long, in a file of 40 bytes.
  const std::string bytes =
      std::string("\x0a\x01m\x32\x80\x80\x80\x80\x04", 9) + std::string(31, 1);
  EXPECT_THAT(std::string(ParseModel(bytes, "m.pb").status().message()),
              HasSubstr("damaged or truncated"));
}

}  // namespace
}  // namespace halftone
