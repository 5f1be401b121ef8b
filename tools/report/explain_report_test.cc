#include "tools/report/explain_report.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/ir/decision.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "passes/report.h"
#include "tools/report/inspect_html.h"
#include "tools/report/inspect_report.h"
#include "tools/report/testing/test_models.h"

namespace halftone {
namespace tools {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Explained(const CompiledModel& model, const std::string& name) {
  const auto text = ExplainName(model, name, /*json=*/false);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *text : "";
}

nlohmann::json Json(const std::string& name) {
  const auto text = ExplainName(Convnet(), name, /*json=*/true);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? nlohmann::json::parse(*text) : nlohmann::json();
}

TEST(ExplainReport, AnOpWithItsChainCastAndFlags) {
  EXPECT_EQ(
      Explained(Convnet(), "logits"),
      "logits: elementwise_add (gray) runs in f16, GRAY_ALL_LOW <- fc  "
      "models/mnist_convnet.pbtxt:31\n"
      "  A gray op runs in low precision if all its float inputs outside slots "
      "that stay f32 are low.\n"
      "  fc: matmul (white) runs in f16, WHITE_LIST  "
      "models/mnist_convnet.pbtxt:30\n"
      "    White ops (convolutions, matrix products) run in low precision, "
      "float inputs cast down: they gain most and lose least.\n"
      "cast     logits.cast_fp32 f16 -> f32 for ce, BLACK_LIST <- ce; 3,840 "
      "B/step at 64 samples; folded into ce ce.grad\n"
      "change   --black-op logits (this op f32), --black elementwise_add (all "
      "such ops f32), --black-var logits (all ops that touch the value f32)\n");
}

TEST(ExplainReport, TheUpCastOfAWeightsGradient) {
  EXPECT_EQ(
      Explained(Convnet(), "conv1.w.grad"),
      "cast     conv1.w.grad f16 -> f32 for the update, GRADIENT_OF <- "
      "conv1.w.cast_fp16; 2,400 B/step at 64 samples; none in the step: the "
      "update reads it as it is\n"
      "conv1.grad.1: conv2d_grad_filter (white) runs in f16, GRADIENT_OF <- "
      "conv1  models/mnist_convnet.pbtxt:9\n"
      "  A backward op runs as its forward op does.\n"
      "  conv1: conv2d (white) runs in f16, WHITE_LIST  "
      "models/mnist_convnet.pbtxt:9\n"
      "    White ops (convolutions, matrix products) run in low precision, "
      "float inputs cast down: they gain most and lose least.\n"
      "change   with conv1: --black-op conv1 (this op f32), --black conv2d "
      "(all such ops f32), --black-var conv1 (all ops that touch the value "
      "f32)\n");
}

TEST(ExplainReport, TheCastOfAResultIsForNoUpdate) {
  const CompiledModel model = CompileText(R"(
      name: "m"
      feed { name: "x" dims: [-1, 8] }
      param { name: "w" dims: [8, 8] init { constant: 1 } }
      op { type: "matmul" in { slot: "X" var: "x" } in { slot: "Y" var: "w" }
           out { slot: "Out" var: "y" } }
      output: "y")");
  EXPECT_THAT(Explained(model, "y.cast_fp32"),
              HasSubstr("cast     y.cast_fp32 f16 -> f32 for the result, "));
  const absl::StatusOr<ModelFacts> facts = FactsOf(model);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_THAT(*InspectText(*facts, {}),
              AllOf(ContainsRegex("y.cast_fp32 +f16 +f32 +the result "),
                    ContainsRegex("1 weights . 0 grads +both .* f16 cells +-"),
                    Not(HasSubstr("the update"))));
  EXPECT_THAT(Explained(model, "w"), HasSubstr("a cell beside the FP32 copy"));
  EXPECT_THAT(InspectHtml(*facts), HasSubstr("<td>the result</td>"));
  EXPECT_THAT(InspectHtml(*facts), Not(HasSubstr("the update")));
}

TEST(ExplainReport, Feeds) {
  EXPECT_EQ(Explained(Convnet(), "label"),
            "label: feed i64[B]  models/mnist_convnet.pbtxt:3\n"
            "  Arrives as the reader delivers it: no rule, list or level "
            "changes its type.\n"
            "  read by ce correct\n");
  EXPECT_EQ(Explained(Convnet(), "@schedule"),
            "@schedule: feed f32[3]\n"
            "  Set by the runtime; it leaves the graph alone.\n");
}

TEST(ExplainReport, Cells) {
  EXPECT_EQ(Explained(Convnet(), "bn1.mean"),
            "bn1.mean: statistic f32[16], 64 B, constant(0)  "
            "models/mnist_convnet.pbtxt:7\n"
            "  Running statistics stay f32 at every level.\n"
            "  read by bn1\n"
            "  updated by bn1.running (running_stats), unless the step is "
            "rejected\n");
  EXPECT_EQ(
      Explained(Convnet(), "fc.b"),
      "fc.b: parameter f32[10], 40 B, uniform(-0.025254, 0.025254)  "
      "models/mnist_convnet.pbtxt:25\n"
      "  The name stands for the FP32 copy: it is what the update changes and "
      "a checkpoint keeps.\n"
      "  read through fc.b.cast_fp16 by logits\n"
      "  gradient f16, summed over the ranks in all-reduce 2 of 2 (57,876 B, 6 "
      "gradients)\n"
      "  updated by momentum.0 (momentum), unless the step is rejected\n"
      "cast     fc.b.cast_fp16 f32 -> f16 for logits, GRAY_ALL_LOW <- logits; "
      "60 B/step at 64 samples; a cell that the update writes beside the FP32 "
      "copy\n");
  EXPECT_THAT(Explained(Convnet(), "@loss_scaling"),
              HasSubstr("in every step, rejected ones too"));
  EXPECT_THAT(Explained(Convnet(), "fc.w.velocity"),
              HasSubstr("slot of fc.w f32[1568,10], 62,720 B"));
}

TEST(ExplainReport, WhatThePassesMade) {
  EXPECT_THAT(Explained(Convnet(), "bn1.mean.next"),
              HasSubstr("made by bn1.running, running_stats (optimize) of the "
                        "finished train entry, f32 SCHEMA\n"));
  EXPECT_THAT(Explained(Convnet(), "fc.w.init"),
              HasSubstr("of the finished init entry, f32 SCHEMA\n"));
  EXPECT_THAT(Explained(Convnet(), "@seed"), HasSubstr("@seed: feed i64[]"));
}

TEST(ExplainReport, WhatCannotBeChangedOffersNoFlag) {
  EXPECT_THAT(Explained(Convnet(), "loss"), Not(HasSubstr("change")));
  EXPECT_THAT(Explained(Convnet(), "x"), Not(HasSubstr("change")));
  const CompiledModel black =
      CompileConvnet({{"amp.custom_black_list", "matmul", "--black"}});
  EXPECT_THAT(Explained(black, "fc"),
              HasSubstr("change   leave it off that list\n"));
  const CompiledModel o0 = CompileConvnet({{"amp.level", "O0", "--level"}});
  EXPECT_THAT(Explained(o0, "fc"), HasSubstr("change   --level O1"));
}

// A pass puts another op in its place: lists name what the model has.
TEST(ExplainReport, FlagsNameTheTypeThatWasWritten) {
  EXPECT_THAT(Explained(Convnet(), "bn1"),
              AllOf(HasSubstr("bn1: sync_batch_norm"),
                    HasSubstr("--black batch_norm (all such ops f32)")));
  const CompiledModel model = CompileText(R"(
      name: "m"
      feed { name: "x" dims: [-1, 4] }
      param { name: "w" dims: [4, 4] init { constant: 1 } }
      param { name: "s" dims: [4] init { constant: 1 } }
      param { name: "b" dims: [4] init { constant: 0 } }
      stat { name: "m" dims: [4] init { constant: 0 } }
      stat { name: "v" dims: [4] init { constant: 1 } }
      op { type: "matmul" in { slot: "X" var: "x" } in { slot: "Y" var: "w" }
           out { slot: "Out" var: "h" } }
      op { type: "batch_norm" in { slot: "X" var: "h" }
           in { slot: "Scale" var: "s" } in { slot: "Bias" var: "b" }
           in { slot: "Mean" var: "m" } in { slot: "Variance" var: "v" }
           out { slot: "Y" var: "y" } }
      output: "y")");
  EXPECT_THAT(Explained(model, "y"),
              AllOf(HasSubstr("y: scale_bias"),
                    HasSubstr("--black batch_norm (all such ops f32)")));
}

// The losses that a loss adds up stay f32 as it does.
TEST(ExplainReport, PartsOfALossOfferNoFlag) {
  const CompiledModel model = CompileText(R"(
      name: "m"
      feed { name: "x" dims: [-1, 4] }
      op { type: "relu" in { slot: "X" var: "x" } out { slot: "Out" var: "a" } }
      op { type: "mean" in { slot: "X" var: "a" } out { slot: "Out" var: "p" } }
      op { type: "tanh" in { slot: "X" var: "x" } out { slot: "Out" var: "b" } }
      op { type: "mean" in { slot: "X" var: "b" } out { slot: "Out" var: "q" } }
      loss { var: "l" mean_over: "a" part { var: "p" }
             part { var: "q" weight: 0.5 } })");
  for (const char* name : {"p", "q", "q.weighted"}) {
    EXPECT_THAT(Explained(model, name), Not(HasSubstr("change")));
  }
}

TEST(ExplainReport, NotesOfTheOp) {
  EXPECT_THAT(Explained(Convnet(), "fc"), HasSubstr("note     D8: conv1 (1"));
  EXPECT_THAT(Explained(Convnet(), "conv2"), Not(HasSubstr("D8")));
}

TEST(ExplainReport, AsJson) {
  const nlohmann::json op = Json("logits");
  EXPECT_EQ(op["schema"], 1);
  EXPECT_EQ(op["chain"][0]["name"], "logits");
  EXPECT_EQ(op["chain"][1]["name"], "fc");
  EXPECT_EQ(op["chain"][1]["depth"], 1);
  EXPECT_EQ(op["chain"][1]["rule"], std::string(RuleOf("WHITE_LIST")));
  EXPECT_EQ(op["casts"][0]["name"], "logits.cast_fp32");
  EXPECT_EQ(op["changes"][0]["flag"], "--black-op logits");
  const nlohmann::json cell = Json("conv1.w");
  EXPECT_EQ(cell["subject"]["kind"], "parameter");
  EXPECT_EQ(cell["subject"]["low_readers"], std::vector<std::string>{"conv1"});
  EXPECT_EQ(cell["subject"]["bucket"], 1);
}

TEST(ExplainReport, UnknownNames) {
  const auto none = ExplainName(Convnet(), "bn1.men", /*json=*/false);
  EXPECT_EQ(ExitCodeOf(none.status()), ExitCode::kUsage);
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("no op, value, cast, feed or cell of that name; "
                        "nearest: bn1.mean"));
}

TEST(ExplainCode, KnowsEveryReasonNoteAndExitCode) {
  for (int r = 1; r <= static_cast<int>(Reason::kSchema); ++r) {
    const std::string name(Name(static_cast<Reason>(r)));
    EXPECT_FALSE(RuleOf(name).empty()) << name;
    EXPECT_TRUE(ExplainCode(name, /*json=*/false).ok()) << name;
  }
  EXPECT_EQ(*ExplainCode("143", /*json=*/false),
            "exit code 143: ended by signal 15\n");
  for (int code = 0; code < 10; ++code) {
    EXPECT_TRUE(ExplainCode(absl::StrCat("E", code), false).ok()) << code;
  }
  const auto json = nlohmann::json::parse(*ExplainCode("E3", /*json=*/true));
  EXPECT_EQ(json["kind"], "exit");
  EXPECT_EQ(json["code"], "3");
  EXPECT_EQ(json["text"], "a check failed, or the programs differ");
}

TEST(ExplainCode, ATitleAboveTheText) {
  EXPECT_THAT(*ExplainCode("P1", /*json=*/false),
              ::testing::StartsWith("P1: parameters that the loss does not "
                                    "use\n     The loss does not depend"));
}

// As they are typed, and lint's with a title each.
TEST(ListSubjects, EachHasAPage) {
  const auto json = nlohmann::json::parse(ListSubjects(/*json=*/true));
  const std::string text = ListSubjects(/*json=*/false);
  std::set<std::string> kinds, notes;
  for (const auto& one : json["subjects"]) {
    const std::string subject = one["subject"], kind = one["kind"];
    EXPECT_NE(one["title"], "") << subject;
    EXPECT_THAT(text, HasSubstr(absl::StrCat("\n", subject, " ")));
    kinds.insert(kind);
    if (kind == "note") notes.insert(subject);
    if (subject == "strategy") continue;  // ExplainStrategy's
    EXPECT_TRUE(ExplainCode(subject, /*json=*/false).ok()) << subject;
  }
  EXPECT_THAT(kinds, ::testing::ElementsAre("exit", "fields", "fusion", "note",
                                            "reason"));
  EXPECT_EQ(notes.size(), passes::NoteDocs().size());
}

TEST(ExplainCode, UnknownOnes) {
  const auto number = ExplainCode("E1203", /*json=*/false);
  EXPECT_EQ(ExitCodeOf(number.status()), ExitCode::kUsage);
  EXPECT_THAT(std::string(number.status().message()),
              HasSubstr("exit codes are E0 to E9"));
  EXPECT_THAT(std::string(ExplainCode("WHITE_LST", false).status().message()),
              HasSubstr("nearest: WHITE_LIST"));
}

}  // namespace
}  // namespace tools
}  // namespace halftone
