// What a report says of precision rules: note P7, and P10 where a cut decides.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/io/model_printer.h"
#include "graph/zoo/zoo.h"
#include "gtest/gtest.h"
#include "passes/compile_testing.h"

namespace halftone {
namespace passes {
namespace {

// White ops with gray ones between them, each with an f32 feed: all_low leaves
// those in f32, any_low takes them along.
std::string AlternatingModel(int layers) {
  std::string model =
      "feed { name: 'x' dims: [-1, 8] } feed { name: 'z' dims: [-1, 8] }\n"
      "param { name: 'w' dims: [8, 8] init { constant: 1 } }\n";
  for (int i = 0; i < layers; ++i) {
    absl::StrAppend(
        &model, "op { type: 'matmul' in { slot: 'X' var: '",
        i == 0 ? "x" : absl::StrCat("h", i - 1),
        "' } in { slot: 'Y' var: 'w' } out { slot: 'Out' var: 'm", i,
        "' } }\nop { type: 'elementwise_add' in { slot: 'X' var: 'm", i,
        "' } in { slot: 'Y' var: 'z' } out { slot: 'Out' var: 'h", i,
        "' } }\n");
  }
  absl::StrAppend(&model, "output: 'h", layers - 1, "'\n");
  return model;
}

TEST(PrecisionRules, ComparesRulesWhereCastsStandAlone) {
  const std::string model = AlternatingModel(100);
  const auto all = CompileText(model, {{"amp.level", "O1", "--level"}});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(NoteOf(all->report, "P7"),
            "200 casts run on their own; precision_rule any_low would leave 3: "
            "--set amp.precision_rule=any_low");
  const auto any =
      CompileText(model, {{"amp.level", "O1", "--level"},
                          {"amp.precision_rule", "any_low", "--set"}});
  ASSERT_TRUE(any.ok()) << any.status();
  EXPECT_EQ(NoteOf(any->report, "P7"), "");
}

// A large model is not compiled again to say so.
TEST(PrecisionRules, BoundsTheOtherRulesCastsInALargeModel) {
  const auto all =
      CompileText(AlternatingModel(600), {{"amp.level", "O1", "--level"}});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(NoteOf(all->report, "P7"),
            "1,200 casts run on their own; precision_rule any_low would leave "
            "at most 4: --set amp.precision_rule=any_low");
}

TEST(PrecisionRules, ACutLeavesNoMoreCastsThanOtherRules) {
  auto with = [](const std::string& rule) {
    return CompileText(AlternatingModel(20),
                       {{"amp.level", "O1", "--level"},
                        {"amp.precision_rule", rule, "--set"}});
  };
  const auto cut = with("min_cost");
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(NoteOf(cut->report, "P10"),
            "placed as by min_cost; a step's casts of their own move, of a "
            "sample: min_cost 144 B, all_low 1,920 B, any_low 144 B");
  EXPECT_EQ(cut->strategy.amp().precision_rule(), "min_cost");
  EXPECT_EQ(FindOp(*cut, "h3")->reason(), "MIN_CUT");
}

// Norms take casts that are inserted before them, and sums none.
TEST(PrecisionRules, ACutGivesWayToARuleWhoseCastsKernelsTake) {
  ZooOptions small;
  small.layers = 2;
  small.image_size = 32;
  const auto model = ZooModel("vit_s_16", small);
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<Override> overrides = {
      {"amp.level", "O1", "--level"},
      {"amp.precision_rule", "min_cost", "--set"},
      {"optimizer.momentum.momentum", "0.9", "--set"}};
  const auto compiled = CompileText(PrintModel(*model), overrides);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_EQ(NoteOf(compiled->report, "P10"),
            "placed as by all_low; a step's casts of their own move, of a "
            "sample: min_cost 115,200 B, all_low 4,608 B, any_low 27,648 B");
  EXPECT_EQ(compiled->strategy.amp().precision_rule(), "min_cost");
  // A part of the program is placed as the whole, or predict would round
  // otherwise than evaluation does.
  CompileFlags part;
  part.outputs = {model->output(0)};
  part.report_entry = "eval";
  const auto outputs = CompileText(PrintModel(*model), overrides, part);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  int ops = 0;
  for (const proto::OpRow& row : outputs->ops.all()) {
    const proto::OpRow* whole = FindOp(*compiled, row.name());
    if (whole == nullptr || whole->role() != "forward") continue;
    ++ops;
    EXPECT_EQ(row.precision(), whole->precision()) << row.name();
  }
  EXPECT_GT(ops, 30);
}

}  // namespace
}  // namespace passes
}  // namespace halftone
