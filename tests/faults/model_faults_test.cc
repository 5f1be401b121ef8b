// Models (.pbtxt, .pb) that are damaged or wrong: what the user of `compile`
// sees. Every rule of models alone is in graph/io/wrong_model_test.cc.
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "tests/faults/faults.h"

namespace halftone {
namespace {

using Parts = std::vector<std::string>;

void ExpectNoModel(const std::string& model, const Parts& says) {
  Parts all = says;
  all.push_back(model);
  ExpectRefusedAndNothingWritten({"compile", model, "--strategy", kO1}, "-o", 1,
                                 all);
}

TEST(ModelFile, ThatIsNone) {
  ExpectNoModel("nowhere.pbtxt", {"cannot open: No such file"});
  ExpectNoModel("models", {"a directory without model.htc"});
  ExpectNoModel(WriteNew("m.pbtxt", ""),
                {"expected a model (.pbtxt, .pb)", "found an empty file"});
  ExpectNoModel(WriteNew("m.pbtxt", "# only this\n"),
                {"found nothing but blanks and comments"});
  ExpectNoModel(WriteNew("m.pbtxt", "{\"op\": 1}"), {"found JSON or markup"});
  ExpectNoModel(WriteNew("m.pb", "PK\3\4 and more"), {"found a zip archive"});
  ExpectNoModel(kO1, {"found a strategy: pass it with --strategy"});
  ExpectNoModel(WriteNew("m.ht", "program \"p\" dim B\n"),
                {"found a program's text form", "the model that it was made"});
  ExpectNoModel(WriteNew("m.pb", AllDamages("xxxx")[5].content),
                {"expected a model"});
}

// Cut inside of a string, a number, a block and between two: the last line is
// named wherever something is missing.
TEST(ModelFile, ThatIsCutOff) {
  const std::string good = ReadAll(kConvnet);
  for (const char* last : {"type: \"conv2", "ints: [2", "slot: \"Bias\" var:",
                           "out { slot: \"Y\" var: \"bn1\""}) {
    const size_t at = good.find(last);
    ASSERT_NE(at, std::string::npos) << last;
    const std::string model =
        WriteNew("m.pbtxt", good.substr(0, at + std::string(last).size()));
    ExpectNoModel(model, {"m.pbtxt:"});
  }
  ExpectNoModel(WriteNew("m.pbtxt", good.substr(0, good.find("\nparam"))),
                {"expected at least one op, found none"});
  ExpectNoModel(WriteNew("m.pbtxt", good.substr(0, good.find("type: \"relu"))),
                {"m.pbtxt:17:6: expected a field's name or the end of a {",
                 "found the end of the file; is it whole"});
}

// Field `op`, 1 GB long, in a file of 40 bytes; and a file of that size.
TEST(ModelFile, ThatClaimsAGigabyte) {
  ExpectNoModel(
      WriteNew("m.pb", std::string("\x0a\x01m\x32\x80\x80\x80\x80\x04", 9) +
                           std::string(31, 1)),
      {"expected a binary model (.pb), found damaged or truncated bytes"});
  const std::string sparse = WriteNew("m.pbtxt", "name: \"x\"");
  ASSERT_EQ(truncate(sparse.c_str(), 1 << 30), 0);
  ExpectNoModel(sparse, {"1073741824 bytes, more than the limit of"});
}

struct Wrong {
  const char* name;
  const char* from;  // in models/mnist_convnet.pbtxt, once
  const char* to;
  Parts says;
};

class WrongModel : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongModel, IsRefusedWithPlaceAndRemedy) {
  const Wrong& wrong = GetParam();
  std::string text = ReadAll(kConvnet);
  const size_t at = text.find(wrong.from);
  ASSERT_NE(at, std::string::npos) << wrong.from;
  text.replace(at, std::string(wrong.from).size(), wrong.to);
  ExpectNoModel(WriteNew("m.pbtxt", text), wrong.says);
}

INSTANTIATE_TEST_SUITE_P(
    Unknown, WrongModel,
    ::testing::Values(
        Wrong{"op",
              "\"conv2d\"",
              "\"cnv2d\"",
              {"m.pbtxt:9: conv1 (cnv2d): unknown op cnv2d; nearest: conv2d",
               "(all: halftone ops)"}},
        Wrong{"input_slot",
              "slot: \"Filter\"",
              "slot: \"Filtr\"",
              {"m.pbtxt:9: conv1 (conv2d): no input slot Filtr; nearest: "
               "Filter; expected one of Input Filter Bias"}},
        Wrong{"output_slot",
              "slot: \"Output\"",
              "slot: \"Out\"",
              {"m.pbtxt:9: conv1 (conv2d): no output slot Out; nearest: "
               "Output"}},
        Wrong{"attribute",
              "name: \"paddings\"",
              "name: \"padings\"",
              {"m.pbtxt:9: conv1 (conv2d): no attribute padings; nearest: "
               "paddings"}},
        Wrong{"field",
              "feed {",
              "feeds {",
              {"m.pbtxt:3:1: unknown field \"feeds\" in Model; nearest: "
               "feed"}},
        Wrong{
            "field_of_an_initialiser",
            "constant: 1",
            "konstant: 1",
            {"m.pbtxt:6:", "unknown field \"konstant\"", "nearest: constant"}},
        Wrong{"dtype",
              "dtype: U8",
              "dtype: U9",
              {"m.pbtxt:3:",
               "unknown dtype U9; nearest: U8; expected one of "
               "F32 F16"}}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    WrongPart, WrongModel,
    ::testing::Values(
        Wrong{"no_value",
              "in { slot: \"Filter\" var: \"conv1.w\" }",
              "",
              {"m.pbtxt:9: conv1 (conv2d): slot Filter: expected one value, "
               "found nothing; give it"}},
        Wrong{"two_values",
              "var: \"conv1.w\" }",
              "var: \"x\" var: \"x\" }",
              {"m.pbtxt:9: conv1 (conv2d): slot Filter: expected one value, "
               "found 2"}},
        Wrong{"shape",
              "[16, 1, 5, 5]",
              "[16, 2, 5, 5]",
              {"m.pbtxt:9: conv1 (conv2d): slot Filter: expected",
               "found "
               "f32[16,2,5,5]; Input is f32[B,1,28,28]"}},
        Wrong{"dtype",
              "dtype: I64",
              "dtype: U8",
              {"m.pbtxt:32: ce (softmax_with_cross_entropy): slot Label: "
               "expected i64, f32, f16, bf16, found u8[B]; cast it first"}},
        Wrong{"attribute_type",
              "ints: [2, 2]",
              "s: \"same\"",
              {"m.pbtxt:9: conv1 (conv2d): attribute paddings: expected ints, "
               "found string"}},
        Wrong{"attribute_range",
              "ints: [2, 2]",
              "ints: [-2, 2]",
              {"m.pbtxt:9: conv1 (conv2d): attribute paddings: expected 2",
               "found [-2, 2]"}},
        Wrong{"initialiser",
              "constant: 1",
              "constant: 1e39",
              {"m.pbtxt:6: param bn1.scale: init: expected finite numbers of "
               "f32, found 1e+39"}},
        Wrong{"newer_format",
              "format: 1",
              "format: 2",
              {"expected format 1 or older, found 2", "use that version"}},
        Wrong{"word_without_quotes",
              "type: \"conv2d\"",
              "type: conv2d",
              {"m.pbtxt:9:",
               "expected text in double quotes, found conv2d; "
               "write \"conv2d\""}}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Graph, WrongModel,
    ::testing::Values(
        Wrong{"dangling",
              "slot: \"Input\" var: \"x\"",
              "slot: \"Input\" var: \"xx\"",
              {"m.pbtxt:9: conv1 (conv2d): slot Input: nothing defines \"xx\"; "
               "nearest: x"}},
        Wrong{"cyclic",
              "slot: \"Input\" var: \"x\"",
              "slot: \"Input\" var: \"logits\"",
              {"m.pbtxt:9: conv1 (conv2d): expected a graph without cycles, "
               "found conv1 -> bn1 -> relu1",
               "no op may need its own"}},
        Wrong{"two_definitions",
              "op { type: \"conv2d\" in { slot: \"Input\" "
              "var: \"x\"",
              "op { name: \"a\" type: \"image_normalize\" in { slot: \"X\" "
              "var: \"image\" } out { slot: \"Out\" var: \"x\" } }\n"
              "op { type: \"conv2d\" in { slot: \"Input\" var: \"x\"",
              {"m.pbtxt:9: a (image_normalize): slot Out: two definitions of "
               "x, the other by op x in line 8; rename one"}},
        Wrong{"two_definitions_by_name",
              "out { slot: \"Output\" var: \"conv1\"",
              "out { slot: \"Output\" var: \"x\"",
              {"m.pbtxt:9: x (conv2d): two ops are called x, the other in "
               "line 8; rename one"}},
        Wrong{"definition_of_a_feed",
              "out { slot: \"Out\" var: \"x\" }",
              "name: \"x\" out { slot: \"Out\" var: \"label\" }",
              {"m.pbtxt:8: x (image_normalize): slot Out: two definitions of "
               "label, the other is a feed"}},
        Wrong{"loss_of_no_value",
              "loss { var: \"loss\"",
              "loss { var: \"lss\"",
              {"m.pbtxt:37: loss: no value is called \"lss\"; nearest: loss"}},
        Wrong{"loss_over_nothing",
              " mean_over: \"ce\"",
              "",
              {"m.pbtxt:37: loss: expected mean_over", "add mean_over"}}),
    [](const auto& info) { return info.param.name; });

// Without a loss a model compiles for evaluation alone; training says why not.
TEST(ModelFile, WithoutALoss) {
  const std::string text = absl::StrReplaceAll(
      ReadAll(kConvnet), {{"loss { var: \"loss\" mean_over: \"ce\" }", ""}});
  const std::string model = WriteNew("m.pbtxt", text);
  const Parts says = {model, "has no loss", "add loss { var: "};
  ExpectRefusedAndNothingWritten(
      {"run", model, "--strategy", kO1, "--data", kDigits}, "--out", 1, says);
  const std::string compiled = Scratch() + "/m.htc";
  EXPECT_EQ(Halftone({"compile", model, "--strategy", kO1, "-o", compiled})
                .exit_code(),
            0);
  ExpectRefusedAndNothingWritten({"run", compiled, "--data", kDigits}, "--out",
                                 1, says);
}

TEST(ModelFile, WithoutAnOptimizerIsNotTrained) {
  ExpectRefusedAndNothingWritten({"run", kConvnet, "--data", kDigits}, "--out",
                                 2, {"the strategy has no optimizer"});
}

}  // namespace
}  // namespace halftone
