#include "tools/report/diff_report.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tools/report/testing/test_models.h"

namespace halftone {
namespace tools {
namespace {

Difference Between(const CompiledModel& before, const CompiledModel& after) {
  const auto difference = DifferenceOf(before, after);
  EXPECT_TRUE(difference.ok()) << difference.status();
  return difference.ok() ? *difference : Difference();
}

std::string TextOfChange(const std::vector<passes::Override>& overrides) {
  return DiffText(Between(Convnet(), CompileConvnet(overrides)));
}

constexpr char kCount[] = R"(
    name: "m"
    feed { name: "x" dtype: F32 dims: [-1, 8] }
    feed { name: "t" dtype: I64 dims: [-1] }
    op { type: "correct_count" in { slot: "X" var: "x" }
         in { slot: "Label" var: "t" } out { slot: "Out" var: "c" }
         attr { name: "k" i: %d } }
    output: "c")";

TEST(DiffReport, EqualPrograms) { EXPECT_EQ(TextOfChange({}), "equal\n"); }

// What leaves the graph alone is a setting, and a difference all the same.
TEST(DiffReport, SettingsByField) {
  const std::pair<passes::Override, const char*> kCases[] = {
      {{"lr.base", "0.5", "--lr"}, "lr.base: 0.01 -> 0.5"},
      {{"train.batch_size", "32", "--set"}, "train.batch_size: 64 -> 32"},
      {{"train.seed", "7", "--set"}, "train.seed: 1 -> 7"},
      {{"train.epochs", "9", "--epochs"}, "train.epochs: 5 -> 9"},
      {{"train.tail", "drop", "--set"}, "train.tail: \"exact\" -> \"drop\""},
      // That it is there is the setting; what it says are defaults.
      {{"train.augment.random_resized_crop.scale_min", "0.08", "--set"},
       "train.augment.random_resized_crop: unset -> { scale_min: 0.08 "
       "scale_max: 1 ratio_min: 0.75 ratio_max: 1.3333333333333333 }"},
  };
  for (const auto& [override_, text] : kCases) {
    EXPECT_EQ(TextOfChange({override_}),
              absl::StrCat("strategy   ", text, "\n"));
    const auto json = nlohmann::json::parse(
        DiffJson(Between(Convnet(), CompileConvnet({override_}))));
    EXPECT_EQ(json["equal"], false);
    EXPECT_EQ(json["strategy"], std::vector<std::string>{text});
  }
}

// Where in which file a model was written does not matter.
TEST(DiffReport, LinesAndFilesAreNoDifference) {
  const std::string text = absl::StrFormat(kCount, 1);
  EXPECT_EQ(DiffText(Between(CompileText(text),
                             CompileText("# a comment\n\n" + text))),
            "equal\n");
  const auto train = [](const std::string& head) {
    return CompileText(head + R"(name: "m"
        feed { name: "x" dtype: F32 dims: [-1, 8] }
        param { name: "w" dims: [8, 8] init { constant: 1 } }
        op { type: "matmul" in { slot: "X" var: "x" }
             in { slot: "Y" var: "w" } out { slot: "Out" var: "y" } }
        op { type: "relu" in { slot: "X" var: "y" }
             out { slot: "Out" var: "z" } }
        output: "z")");
  };
  EXPECT_EQ(DiffText(Between(train(""), train("# one line more\n"))),
            "equal\n");
}

// No order of a list of names changes what it says.
TEST(DiffReport, NamesOfAListAreASet) {
  const passes::Override a = {"amp.custom_black_list", "matmul", "--black"};
  const passes::Override b = {"amp.custom_black_list", "relu", "--black"};
  EXPECT_EQ(DiffText(Between(CompileConvnet({a, b}), CompileConvnet({b, a}))),
            "equal\n");
}

TEST(DiffReport, PrecisionCastsAndReductions) {
  EXPECT_EQ(
      TextOfChange({{"amp.custom_black_list", "matmul", "--black"}}),
      "precision  fc f16->f32 USER_BLACK, logits f16->f32 GRAY_F32_INPUT <- "
      "fc, correct f16->f32 CLEAR_FOLLOWS <- logits\n"
      "casts      15 -> 11 inserted; - logits.cast_fp32 logits.grad; + "
      "flat.cast_fp32 flat.grad; standalone 0 -> 1, +602,112 B/step; fc.w "
      "fc.b lose their f16 cells\n"
      "all-reduce f16 57,876 -> 26,496 B, f32 384 -> 63,144 B\n"
      "strategy   added: amp.custom_black_list[0]: \"matmul\"\n");
}

TEST(DiffReport, OneCellIsNotPlural) {
  const CompiledModel black =
      CompileConvnet({{"amp.custom_black_opnames", "logits", "--black-op"}});
  EXPECT_THAT(DiffText(Between(Convnet(), black)),
              ::testing::HasSubstr("; fc.b loses its f16 cell\n"));
  EXPECT_THAT(DiffText(Between(black, Convnet())),
              ::testing::HasSubstr("; fc.b gets its f16 cell\n"));
}

TEST(DiffReport, AReasonThatChangesStandsOnceWithItsEntries) {
  EXPECT_EQ(TextOfChange({{"amp.custom_white_list", "conv2d", "--white"}}),
            "reasons    conv1 conv2: f16 WHITE_LIST -> f16 USER_WHITE (train, "
            "eval)\n"
            "strategy   added: amp.custom_white_list[0]: \"conv2d\"\n");
  EXPECT_EQ(TextOfChange({{"amp.level", "O2", "--level"}}),
            "reasons    bn1 relu1 bn2 relu2 logits: f16 GRAY_ALL_LOW -> f16 "
            "LEVEL (train, eval)\n"
            "strategy   amp.level: \"O1\" -> \"O2\"\n");
}

TEST(DiffReport, OtherwiseStrategyAndStatements) {
  EXPECT_EQ(TextOfChange({{"optimizer.momentum.momentum", "0.8", "--set"}}),
            "strategy   optimizer.momentum.momentum: 0.9 -> 0.8\n"
            "program    momentum.0: mu=0.9 -> mu=0.8 (train)\n"
            "           momentum.1: mu=0.9 -> mu=0.8 (train)\n");
  EXPECT_EQ(
      TextOfChange({{"amp.loss_scaling.init_loss_scaling", "1024", "--set"}}),
      "strategy   amp.loss_scaling.init_loss_scaling: 32768 -> 1024\n"
      "program    cell @loss_scaling: 32768 -> 1024\n"
      "           @loss_scaling.init: value=32768 -> value=1024 (init)\n");
}

TEST(DiffReport, AStatementOfSeveralEntriesStandsOnce) {
  const auto with = [](int k) {
    return CompileText(absl::StrFormat(kCount, k));
  };
  EXPECT_EQ(DiffText(Between(with(1), with(2))), "program    c: k=1 -> k=2\n");
}

// A model with a hidden layer of `width`, `function` behind it and weights that
// begin with `init`; the second product is in f32 where `black` is.
CompiledModel Perceptron(int width, const char* function, double init,
                         bool black) {
  const CompiledModel model = CompileText(absl::StrFormat(
      R"(name: "m"
         feed { name: "x" dims: [-1, 8] }
         param { name: "w" dims: [8, %d] init { constant: %g } }
         param { name: "v" dims: [%d, 4] init { constant: 1 } }
         op { type: "matmul" in { slot: "X" var: "x" }
              in { slot: "Y" var: "w" } out { slot: "Out" var: "h" } }
         op { type: "%s" in { slot: "X" var: "h" }
              out { slot: "Out" var: "a" } }
         op { type: "matmul" in { slot: "X" var: "a" }
              in { slot: "Y" var: "v" } out { slot: "Out" var: "y" } }
         output: "y")",
      width, init, width, function));
  auto other = RecompileWith(
      model, black ? std::vector<passes::Override>{{"amp.custom_black_opnames",
                                                    "y", "--black-op"}}
                   : std::vector<passes::Override>{});
  EXPECT_TRUE(other.ok()) << other.status();
  return other.ok() ? *std::move(other) : CompileText("");
}

// What the models themselves say is told whatever precision does, and what
// precision puts in is no part of it.
TEST(DiffReport, WhatWasWrittenStandsBesidePrecision) {
  using ::testing::ElementsAre;
  using ::testing::IsEmpty;
  using ::testing::StartsWith;
  const CompiledModel before = Perceptron(8, "relu", 1, false);
  const auto program = [&before](const CompiledModel& after) {
    const Difference difference = Between(before, after);
    EXPECT_THAT(difference.precision, ElementsAre(StartsWith("y f16->f32")));
    EXPECT_FALSE(difference.casts.empty());
    return difference.program;
  };
  EXPECT_THAT(program(Perceptron(8, "relu", 1, true)), IsEmpty());
  EXPECT_THAT(program(Perceptron(8, "gelu", 1, true)),
              ElementsAre("a: relu -> gelu"));
  EXPECT_THAT(program(Perceptron(8, "relu", 0.5, true)),
              ElementsAre("cell w: 1 -> 0.5"));
  EXPECT_THAT(
      program(Perceptron(16, "relu", 1, true)),
      ElementsAre("cell w: f32[8,8] -> f32[8,16]",
                  "cell v: f32[8,4] -> f32[16,4]", "h: f32[B,8] -> f32[B,16]",
                  "a: f32[B,8] -> f32[B,16]"));
}

TEST(DiffJson, HasAllParts) {
  const auto json = nlohmann::json::parse(DiffJson(
      Between(Convnet(), CompileConvnet({{"amp.level", "O2", "--level"}}))));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["equal"], false);
  EXPECT_EQ(json["reasons"].size(), 1u);
  EXPECT_TRUE(json["precision"].empty());
}

}  // namespace
}  // namespace tools
}  // namespace halftone
