#include "passes/number_notes.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/compile_testing.h"
#include "passes/report.h"

namespace halftone {
namespace passes {
namespace {

using ::testing::ElementsAre;

// A product in f16 in front, so that what follows may be low.
constexpr char kProduct[] = R"(
feed { name: "x" dims: [-1, 8] }
param { name: "w" dims: [8, 5000] init { constant: 1 } }
op { type: "matmul" in { slot: "X" var: "x" } in { slot: "Y" var: "w" } out { slot: "Out" var: "h" } }
)";

std::string Op(const std::string& type, const std::string& x,
               const std::string& out, const std::string& more = "") {
  return absl::StrCat("op { type: '", type, "' in { slot: 'X' var: '", x,
                      "' } out { slot: 'Out' var: '", out, "' } ", more,
                      " }\noutput: '", out, "'\n");
}

proto::CompileReport ReportOf(const std::string& ops,
                              std::vector<Override> overrides = {}) {
  overrides.push_back({"amp.level", "O1", "--level"});
  const auto model = CompileText(absl::StrCat(kProduct, ops), overrides);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? model->report : proto::CompileReport();
}

TEST(NumberNotes, ConstantsOutsideF16) {
  const std::string bias = "attr { name: 'bias' f: -1e9 }";
  const proto::CompileReport report = ReportOf(
      absl::StrCat(Op("scale", "h", "masked", bias),
                   Op("scale", "h", "fine", "attr { name: 'bias' f: -1e4 }"),
                   Op("scale", "h", "gone", "attr { name: 'scale' f: 1e-9 }")));
  EXPECT_EQ(NoteOf(report, "N1"),
            "masked.bias (-1e+09: -inf), gone.scale (1e-09: 0): numbers that "
            "f16 does not hold");
  for (const proto::Note& note : report.note()) {
    if (note.code() != "N1") continue;
    EXPECT_THAT(note.op(), ElementsAre("masked", "gone"));
  }
  // bf16 has f32's range, and in f32 there is nothing to say.
  const std::string op = Op("scale", "h", "masked", bias);
  EXPECT_EQ(NoteOf(ReportOf(op, {{"amp.dtype", "bf16", "--dtype"}}), "N1"), "");
  EXPECT_EQ(
      NoteOf(ReportOf(op, {{"amp.custom_black_list", "scale", "--black"}}),
             "N1"),
      "");
}

TEST(NumberNotes, BordersOutsideF16) {
  EXPECT_EQ(NoteOf(ReportOf(Op("pad", "h", "edge",
                               "attr { name: 'paddings' ints: [0, 0, 1, 1] } "
                               "attr { name: 'pad_value' f: 1e5 }")),
                   "N1"),
            "edge.pad_value (100000: inf): numbers that f16 does not hold");
}

TEST(NumberNotes, AFillThatIsCast) {
  EXPECT_EQ(
      NoteOf(
          ReportOf("op { type: 'fill_constant' out { slot: 'Out' var: "
                   "'c' } attr { name: 'value' f: 7e4 } attr { name: "
                   "'shape' ints: [5000] } }\n"
                   "op { type: 'elementwise_add' in { slot: 'X' var: "
                   "'h' } in { slot: 'Y' var: 'c' } out { slot: 'Out' "
                   "var: 's' } }\noutput: 's'\n",
                   {{"amp.custom_white_list", "elementwise_add", "--white"}}),
          "N1"),
      "c.value (70000: inf): numbers that f16 does not hold");
}

TEST(NumberNotes, LongSumsInF16) {
  const std::string sum =
      Op("reduce_sum", "h", "s", "attr { name: 'dim' ints: [1] }");
  EXPECT_EQ(NoteOf(ReportOf(sum), "N2"), "");  // black: in f32
  const std::vector<Override> white = {
      {"amp.custom_white_list", "reduce_sum", "--white"}};
  EXPECT_EQ(NoteOf(ReportOf(sum, white), "N2"),
            "s (5,000 summands): sums in f16 are infinite above 65,504; "
            "without your white list they stay in f32");
}

TEST(NumberNotes, WhatLosesBetweenTwoOps) {
  const proto::CompileReport report = ReportOf(absl::StrCat(
      Op("sigmoid", "h", "p"), Op("log", "p", "l"), Op("softmax", "h", "q"),
      Op("log", "q", "m"), Op("softmax", "q", "r"), Op("log", "h", "fine")));
  EXPECT_EQ(NoteOf(report, "N3"),
            "l (log of p; instead: -softplus(-x)), m (log of q; instead: "
            "log_softmax), r (softmax of q; instead: one softmax): rounding "
            "between the two loses what one op keeps");
}

// A lone low op between f32 ones moves twice its bytes for its casts.
TEST(IslandNotes, CastsThatCostMoreThanTheySave) {
  const std::string island = absl::StrCat(
      "feed { name: 'y' dims: [-1, 64] }\n", Op("exp", "y", "before"),
      Op("relu", "before", "alone"), Op("exp", "alone", "after"));
  EXPECT_EQ(
      NoteOf(ReportOf(island, {{"amp.custom_white_list", "relu", "--white"}}),
             "C1"),
      "alone: casts around them move 768 B per sample to save 256 B; "
      "--black-op alone");
  EXPECT_EQ(NoteOf(ReportOf(island), "C1"), "");
}

}  // namespace
}  // namespace passes
}  // namespace halftone
