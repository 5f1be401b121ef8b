#include "tools/report/inspect_report.h"

#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tools/report/inspect_html.h"
#include "tools/report/testing/test_models.h"

namespace halftone {
namespace tools {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Text(const CompiledModel& model, const InspectOptions& options) {
  const auto text = InspectText(FixedFacts(model), options);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *text : "";
}

nlohmann::json Json(const std::string& scope) {
  const auto text = InspectJson(FixedFacts(Convnet()), scope);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? nlohmann::json::parse(*text) : nlohmann::json();
}

TEST(InspectReport, TheWholeScreen) {
  // clang-format off
  EXPECT_EQ(
      Text(Convnet(), {}),
      "op       type                        runs in  why                                           list   models/mnist_convnet.pbtxt\n"
      "x        image_normalize             f32      NO_FLOAT_INPUT                                gray   :8\n"
      "conv1    conv2d                      f16      WHITE_LIST                                    white  :9\n"
      "bn1      sync_batch_norm             f16      GRAY_ALL_LOW <- conv1; 4 slots KEEP_F32_SLOT  gray   :11\n"
      "relu1    relu                        f16      GRAY_ALL_LOW <- bn1                           gray   :17\n"
      "pool1    pool2d                      f16      CLEAR_FOLLOWS <- relu1                        clear  :18\n"
      "conv2    conv2d                      f16      WHITE_LIST                                    white  :20\n"
      "bn2      sync_batch_norm             f16      GRAY_ALL_LOW <- conv2; 4 slots KEEP_F32_SLOT  gray   :22\n"
      "relu2    relu                        f16      GRAY_ALL_LOW <- bn2                           gray   :26\n"
      "pool2    pool2d                      f16      CLEAR_FOLLOWS <- relu2                        clear  :27\n"
      "flat     flatten                     f16      CLEAR_FOLLOWS <- pool2                        clear  :29\n"
      "fc       matmul                      f16      WHITE_LIST                                    white  :30\n"
      "logits   elementwise_add             f16      GRAY_ALL_LOW <- fc                            gray   :31\n"
      "ce       softmax_with_cross_entropy  f32      BLACK_LIST                                    black  :32\n"
      "loss     mean                        f32      BLACK_LIST                                    black  :34\n"
      "correct  correct_count               f16      CLEAR_FOLLOWS <- logits                       clear  :35\n"
      "cast                 from  to   for                    bytes/step  fate                    without it\n"
      "x.cast_fp16          f32   f16  conv1                     301,056  folded into x           -\n"
      "logits.cast_fp32     f16   f32  ce                          3,840  folded into ce ce.grad  --white softmax_with_cross_entropy: gone\n"
      "logits.grad          f32   f16  backward of the above       3,840  folded into ce.grad     (same)\n"
      "6 weights + 6 grads  both       conv1 conv2 fc logits     347,256  f16 cells; the update   -   standalone casts: 0\n"
      "state 290,560 B: FP32 copies 115,752, other parameters 384, f16 cells 57,876, velocity 116,136, batch norm 384, scaler, clocks 28 | all-reduce f16 57,876 f32 384 | peak 4.8 MiB\n"
      "(bytes per step and peak: 64 samples on one rank)\n");
  // clang-format on
}

TEST(InspectReport, OfAScope) {
  const std::string text = Text(Convnet(), {/*all=*/false, "conv1*"});
  EXPECT_THAT(text, HasSubstr("conv1  conv2d  f16      WHITE_LIST"));
  EXPECT_THAT(text, HasSubstr("conv1.w.cast_fp16  f32   f16  conv1  "));
  EXPECT_THAT(text, Not(HasSubstr("conv2 ")));
  const auto none = InspectText(FixedFacts(Convnet()), {false, "bm1"});
  EXPECT_EQ(ExitCodeOf(none.status()), ExitCode::kUsage);
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("--scope bm1: matches no op, cast or cast value; "
                        "nearest: bn1"));
}

// As they stand in the table.
TEST(InspectReport, AScopeNamesCasts) {
  for (const char* name : {"logits.cast_fp32", "logits.grad", "x.cast_fp16"}) {
    const auto text = InspectText(FixedFacts(Convnet()), {false, name});
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_THAT(*text, ContainsRegex(std::string("\n") + name + " +f"));
  }
}

// "The above" is said where it stands above.
TEST(InspectReport, TheCastOfAGradientIsNamed) {
  const auto alone =
      InspectText(FixedFacts(Convnet()), {false, "logits.cast_fp32.grad*"});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_THAT(*alone, ContainsRegex("logits.grad +f32 +f16 +backward of "
                                    "logits.cast_fp32 .* as logits.cast_fp32"));
  EXPECT_THAT(*alone, Not(HasSubstr("the above")));
}

// As compile says.
TEST(InspectReport, WhatIsMissingForTrainingIsNamed) {
  const char kModel[] = R"(
    name: "m"
    feed { name: "x" dims: [-1, 8] }
    param { name: "w" dims: [8, 8] init { constant: 1 } }
    op { type: "matmul" in { slot: "X" var: "x" } in { slot: "Y" var: "w" }
         out { slot: "Out" var: "h" } }
    op { type: "mean" in { slot: "X" var: "h" } out { slot: "Out" var: "l" } }
    output: "h" )";
  const CompiledModel without = CompileText(kModel);
  const auto asked = RecompileWith(without, {{"optimizer.sgd", "", "--set"}});
  ASSERT_TRUE(asked.ok()) << asked.status();
  for (const CompiledModel* model : {&without, &*asked}) {
    EXPECT_THAT(Text(*model, {}),
                HasSubstr("nothing trains without a loss, --entry train"));
  }
  const CompiledModel with =
      CompileText(std::string(kModel) + R"(loss { var: "l" mean_over: "h" })");
  EXPECT_THAT(Text(with, {}),
              HasSubstr("nothing trains without an optimizer, --entry train"));
}

TEST(InspectReport, ACastThatMovesSaysWhere) {
  const CompiledModel model = CompileText(R"(
    name: "m"
    feed { name: "x" dtype: F32 dims: [-1, 8] }
    param { name: "w" dims: [8, 8] init { constant: 1 } }
    op { type: "matmul" in { slot: "X" var: "x" } in { slot: "Y" var: "w" }
         out { slot: "Out" var: "h" } }
    op { type: "exp" in { slot: "X" var: "h" } out { slot: "Out" var: "e" } }
    op { type: "square" in { slot: "X" var: "e" } out { slot: "Out" var: "y" } }
    output: "y")");
  EXPECT_THAT(Text(model, {}), HasSubstr("--white exp: moves to e, 48 B"));
}

// What an entry makes is f32, whatever reads it besides. Of a model that
// trains, too, where eval is asked for.
TEST(InspectReport, ACastOfAResultStays) {
  const std::string text = R"(
    name: "m"
    feed { name: "x" dims: [-1, 8] }
    param { name: "w" dims: [8, 8] init { constant: 1 } }
    op { type: "matmul" in { slot: "X" var: "x" } in { slot: "Y" var: "w" }
         out { slot: "Out" var: "h" } }
    op { type: "exp" in { slot: "X" var: "h" } out { slot: "Out" var: "e" } }
    op { type: "mean" in { slot: "X" var: "e" } out { slot: "Out" var: "l" } }
    loss { var: "l" mean_over: "e" }
    output: "h")";
  const CompiledModel model = CompileText(text);
  EXPECT_THAT(
      Text(model, {}),
      ContainsRegex("h.cast_fp32 .* --white exp: stays, for the result"));
  const auto trained =
      RecompileWith(model, {{"optimizer.sgd", "", "--set"}}, /*taps=*/{},
                    /*threads=*/0, /*report_entry=*/"eval");
  ASSERT_TRUE(trained.ok()) << trained.status();
  const auto facts = FactsOf(*trained, /*samples=*/0, "eval");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_THAT(
      *InspectText(*facts, {}),
      ContainsRegex("h.cast_fp32 .* --white exp: stays, for the result"));
}

TEST(InspectJson, HasWhatInterfaceNames) {
  const auto json = Json("");
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["precision_rule"], "all_low");
  EXPECT_EQ(json["ops"][1], nlohmann::json::parse(R"({"name": "conv1",
      "type": "conv2d", "role": "forward",
      "inputs": {"Input": ["x.cast_fp16"], "Filter": ["conv1.w.cast_fp16"],
                 "Bias": ["conv1.b.cast_fp16"]},
      "outputs": {"Output": ["conv1"]}, "precision": "f16",
      "reason": "WHITE_LIST", "because_of": [], "class": "white",
      "line": 9})"));
  EXPECT_EQ(json["params"][0], nlohmann::json::parse(R"({"name": "conv1.w",
      "dtype": "f32", "shape": [16, 1, 5, 5],
      "low_cell": "conv1.w.cast_fp16", "gradient_dtype": "f16"})"));
  EXPECT_EQ(json["totals"]["cast_bytes_per_step"], 301056 + 2 * 3840 + 347256);
}

TEST(InspectJson, OfAScope) {
  const auto names = [](const nlohmann::json& rows) {
    std::vector<std::string> names;
    for (const auto& row : rows) names.push_back(row["name"]);
    return names;
  };
  const nlohmann::json json = Json("fc*");
  EXPECT_THAT(names(json["ops"]), ElementsAre("fc", "fc.grad", "fc.grad.1"));
  EXPECT_THAT(names(json["casts"]), Contains("fc.w.cast_fp16"));
  EXPECT_THAT(names(json["casts"]), Each(StartsWith("fc.")));
  EXPECT_EQ(json["totals"], Json("")["totals"]);
  EXPECT_EQ(ExitCodeOf(InspectJson(FixedFacts(Convnet()), "bm1").status()),
            ExitCode::kUsage);
}

TEST(InspectHtml, IsOnePageWithEveryOpAndCast) {
  const ModelFacts facts = FixedFacts(Convnet());
  const std::string html = InspectHtml(facts);
  EXPECT_THAT(html, StartsWith("<!DOCTYPE html>"));
  for (const char* outside : {"http", "src=", "href=", "@import", "url("}) {
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  }
  for (const proto::OpRow& op : facts.model->ops.all()) {
    EXPECT_THAT(html, HasSubstr("[\"" + op.name() + "\","));
  }
  for (const proto::CastRow& cast : Convnet().casts.all()) {
    EXPECT_THAT(html, HasSubstr("<td>" + cast.name() + "</td>"));
  }
  EXPECT_THAT(html, HasSubstr("GRAY_ALL_LOW \\u003c- conv1; 4 slots"));
  EXPECT_THAT(html, HasSubstr("<td class=\"r\">301,056</td>"));
}

TEST(InspectHtml, NothingInANameIsMarkup) {
  const CompiledModel model = CompileText(R"(
    name: "a<b"
    feed { name: "x" dtype: F32 dims: [-1, 8] }
    op { name: "net/</script><i>" type: "relu" in { slot: "X" var: "x" }
         out { slot: "Out" var: "a" } }
    output: "a")");
  const std::string html = InspectHtml(FixedFacts(model));
  EXPECT_THAT(html, HasSubstr("<title>a&lt;b</title>"));
  EXPECT_THAT(html, HasSubstr("[\"net/\\u003c/script>\\u003ci>\","));
  EXPECT_THAT(html, Not(HasSubstr("<i>")));
}

// The gradient cast of `logits` makes the value logits.grad, which is what the
// backward op of `logits` is called.
TEST(InspectJson, NoCastIsCalledAsAnOp) {
  const auto json = Json("");
  std::set<std::string> names;
  for (const auto& op : json["ops"]) names.insert(op["name"]);
  bool differ = false;
  for (const auto& cast : json["casts"]) {
    EXPECT_TRUE(names.insert(cast["name"]).second) << cast;
    differ |= cast["name"] != cast["output"];
  }
  EXPECT_TRUE(differ);
}

}  // namespace
}  // namespace tools
}  // namespace halftone
