// Ops of Paddle's that are several of ours. (That they compute what Paddle
// does: tests/cli/paddle_oracle_test.)
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/import/functions.h"
#include "graph/import/paddle_import_testing.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using paddle_testing::Longs;
using paddle_testing::Op;
using paddle_testing::Text;
using paddle_testing::Var;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Int(const char* name, int value) {
  return absl::StrCat("attrs { name: '", name, "' type: INT i: ", value, " } ");
}
std::string Float(const char* name, float value) {
  return absl::StrCat("attrs { name: '", name, "' type: FLOAT f: ", value,
                      " } ");
}

// Of x, f32 with these dims.
std::string Made(const std::string& type, const std::string& dims,
                 const std::string& attrs = "", const char* in = "X:x",
                 const char* out = "Out:out") {
  return Text(absl::StrCat(Var("x", dims), Var("out", ""),
                           Op(type, {in}, {out}, attrs)));
}
// Of x and y.
std::string MadeOfTwo(const std::string& type, const std::string& x,
                      const std::string& y, const std::string& y_slot = "Y",
                      const std::string& dtype = "FP32") {
  return Text(absl::StrCat(Var("x", x), Var("y", y, "", dtype), Var("out", ""),
                           Op(type, {"X:x", y_slot + ":y"}, {"Out:out"})));
}

TEST(PaddleParts, Functions) {
  for (const ImportedFunction& function : ImportedFunctions()) {
    if (function.paddle.empty()) continue;
    const std::string made = Made(std::string(function.paddle), "-1, 3");
    EXPECT_THAT(made, HasSubstr("out { slot: \"Out\" var: \"out\" }"))
        << function.paddle;
  }
  EXPECT_THAT(Made("celu", "-1, 3", Float("alpha", 4)),
              AllOf(HasSubstr("f: 0.25"), HasSubstr("f: 4")));
  EXPECT_THAT(Made("celu", "-1, 3", Float("alpha", 0)), HasSubstr("\"relu\""));
  EXPECT_THAT(Made("logit", "-1, 3", Float("eps", 0)), Not(HasSubstr("clip")));
}

TEST(PaddleParts, WholeNumbersAreDividedAsFloats) {
  const std::string ints =
      MadeOfTwo("elementwise_floordiv", "-1, 3", "3", "Y", "INT64");
  EXPECT_THAT(ints, HasSubstr("name: \"to\" s: \"f32\""));
  EXPECT_THAT(MadeOfTwo("elementwise_mod", "-1, 3", "3"),
              AllOf(HasSubstr("\"floor\""), Not(HasSubstr("\"cast\""))));
}

TEST(PaddleParts, WholeNumbersThroughF32AreNoted) {
  const auto notes = [](const std::string& type) {
    const auto model = paddle_testing::Import(absl::StrCat(
        Var("x", "-1, 3", "", type), Var("y", "3", "", type), Var("out", ""),
        Op("elementwise_floordiv", {"X:x", "Y:y"}, {"Out:out"})));
    EXPECT_TRUE(model.ok()) << model.status();
    return model->notes;
  };
  EXPECT_THAT(notes("INT64"),
              ElementsAre("elementwise_floordiv x1: computes whole numbers in "
                          "f32, exact up to 16,777,216; reduce larger ones "
                          "before they are fed; first at block 0 op 0 (out)"));
  EXPECT_THAT(notes("FP32"), ElementsAre());
}

// What is upscale_factor to ours.
TEST(PaddleParts, PixelsAreTakenApart) {
  EXPECT_THAT(Text(absl::StrCat(
                  Var("x", "-1, 2, 6, 6"), Var("out", ""),
                  Op("pixel_unshuffle", {"X:x"}, {"Out:out"},
                     Int("downscale_factor", 3) +
                         "attrs { name: 'data_format' type: STRING s: 'NCHW' "
                         "} "))),
              HasSubstr("name: \"upscale_factor\" i: 3"));
}

TEST(PaddleParts, Products) {
  const auto einsum = [](const std::string& equation) {
    return Text(absl::StrCat(
        Var("x", "-1, 3, 4"), Var("y", "-1, 4, 5"), Var("out", ""),
        Op("einsum", {"Operands:x,y"}, {"Out:out"},
           absl::StrCat("attrs { name: 'equation' type: STRING s: '", equation,
                        "' } "))));
  };
  EXPECT_THAT(einsum("bij,bjk->bik"), HasSubstr("\"matmul\""));
  EXPECT_THAT(einsum("bij,bkj->bik"),
              HasSubstr("equation bij,bkj->bik: dims j differ"));
  EXPECT_THAT(MadeOfTwo("kron", "-1, 3", "2, 5"), HasSubstr("[-1, 15]"));
}

TEST(PaddleParts, RowsByTheirNumbers) {
  const auto taken = [](const char* x, const char* index) {
    return MadeOfTwo("gather_nd", x, index, "Index", "INT64");
  };
  EXPECT_THAT(taken("3, 4, 5", "2, 1"), HasSubstr("\"gather\""));
  // Row r, column c of [3, 4] is row 4 r + c of [12].
  EXPECT_THAT(taken("3, 4, 5", "2, 2"),
              AllOf(HasSubstr("ints: [12, 5]"), HasSubstr("f: 4")));
  EXPECT_THAT(taken("-1, 4, 5", "7, 2"), HasSubstr("ints: [-1, 5]"));
  // 2^24 + 2^12 places are more than f32 can number.
  EXPECT_THAT(taken("4097, 4096", "2, 2"), HasSubstr("2^24 places at most"));
  EXPECT_THAT(taken("3", "2, 2"), HasSubstr("an Index of [..., first dims"));
}

TEST(PaddleParts, Orders) {
  EXPECT_THAT(Made("argsort", "-1, 3", Int("axis", -1)),
              AllOf(HasSubstr("\"top_k\""), HasSubstr("f: -1")));
  EXPECT_THAT(Made("argsort", "-1, 3", Int("axis", 0)),
              HasSubstr("a known dim to sort, found [-1, 3]"));
  EXPECT_THAT(Made("argsort", "-1, 3", Int("axis", 2)),
              HasSubstr("an axis that is there, found [-1, 3]"));
  EXPECT_THAT(Made("top_k_v2", "-1, 3, 4", Int("axis", 1) + Int("k", 2)),
              AllOf(HasSubstr("\"transpose2\""), HasSubstr("\"top_k\"")));
}

TEST(PaddleParts, Windows) {
  const std::string attrs =
      Longs("kernel_sizes", "2, 3") + Longs("strides", "1, 1") +
      Longs("paddings", "1, 0, 0, 2") + Longs("dilations", "1, 1");
  EXPECT_THAT(Made("unfold", "-1, 3, 4, 5", attrs, "X:x", "Y:out"),
              AllOf(HasSubstr("\"conv2d\""), HasSubstr("ints: [-1, 18, 20]"),
                    HasSubstr("ints: [1, 0, 0, 2]")));
  EXPECT_THAT(Made("unfold", "-1, 3, 0, 5", attrs, "X:x", "Y:out"),
              HasSubstr("room for a window, found [-1, 3, 0, 5]"));
  // Numbers whose sums would not fit.
  const std::string most = "9223372036854775807";
  for (const char* const name : {"kernel_sizes", "strides", "dilations"}) {
    EXPECT_THAT(Made("unfold", "-1, 3, 4, 5", Longs(name, most + ", 1") + attrs,
                     "X:x", "Y:out"),
                HasSubstr("room for a window"));
  }
  EXPECT_THAT(
      Made("unfold", "-1, 3, 4, 5",
           Longs("paddings", absl::StrCat(most, ", 1, ", most, ", 1")) + attrs,
           "X:x", "Y:out"),
      HasSubstr("room for a window"));
  const std::string sizes = attrs + Longs("output_sizes", "4, 5");
  EXPECT_THAT(Made("fold", "-1, 18, 20", sizes, "X:x", "Y:out"),
              HasSubstr("\"conv2d_transpose\""));
  EXPECT_THAT(Made("fold", "-1, 18, 12", sizes, "X:x", "Y:out"),
              HasSubstr("[N, C * places, windows], found [-1, 18, 12]"));
}

TEST(PaddleParts, Places) {
  EXPECT_THAT(Made("maxout", "-1, 6, 4, 4", Int("groups", 3)),
              HasSubstr("ints: [-1, 2, 3, 4, 4]"));
  EXPECT_THAT(Made("maxout", "-1, 5, 4, 4", Int("groups", 3)),
              HasSubstr("whole groups, found [-1, 5, 4, 4]"));
  EXPECT_THAT(
      Made("repeat_interleave", "-1, 3", Int("dim", 1) + Int("Repeats", 2)),
      HasSubstr("ints: [-1, 6]"));
  EXPECT_THAT(
      Made("repeat_interleave", "-1, 3", Int("dim", 0) + Int("Repeats", 2)),
      HasSubstr("a known dim to repeat, found [-1, 3]"));
  EXPECT_THAT(Made("temporal_shift", "6, 4, 3, 3", Int("seg_num", 2)),
              HasSubstr("ints: [3, 2, 4, 3, 3]"));
  EXPECT_THAT(Made("temporal_shift", "-1, 4", Int("seg_num", 2)),
              HasSubstr("frames of [C, H, W], found [-1, 4]"));
  EXPECT_THAT(Made("crop_tensor", "-1, 4",
                   Longs("shape", "-1, 2") + Longs("offsets", "0, 1")),
              HasSubstr("name: \"ends\" ints: [3]"));
  EXPECT_THAT(Made("crop_tensor", "-1, 4", Longs("shape", "2")),
              HasSubstr("expected shape and offsets in numbers"));
}

TEST(PaddleParts, Diagonals) {
  const std::string last = Int("axis1", 1) + Int("axis2", 2);
  EXPECT_THAT(Made("diagonal", "-1, 4, 4", last, "Input:x"),
              Not(HasSubstr("\"slice\"")));
  EXPECT_THAT(Made("diagonal", "-1, 4, 3", last + Int("offset", -1), "Input:x"),
              HasSubstr("name: \"starts\" ints: [1]"));
  EXPECT_THAT(Made("trace", "4, 4, 3", "", "Input:x"),
              HasSubstr("\"transpose2\""));
  EXPECT_THAT(Made("diagonal", "-1, 4, 4", "", "Input:x"),
              HasSubstr("a diagonal of known dims, found [-1, 4, 4]"));
  EXPECT_THAT(Made("diag_embed", "-1, 4", Int("offset", 1), "Input:x"),
              HasSubstr("the main diagonal"));
}

// Sums and products of what a file says fit, or are not made (a sanitizer
// sees): each op is taken or refused.
TEST(PaddleParts, NumbersAtTheirLimits) {
  for (const char* const number :
       {"9223372036854775807", "-9223372036854775808", "2147483648", "0"}) {
    std::string attrs = Float("shift_ratio", 1e38f);
    for (const char* const one :
         {"Repeats", "axis", "axis1", "diagonal", "dim", "groups", "k",
          "num_columns", "num_rows", "offset", "seg_num"}) {
      absl::StrAppend(&attrs, "attrs { name: '", one,
                      "' type: LONG l: ", number, " } ");
    }
    for (const char* const several :
         {"dilations", "kernel_sizes", "offsets", "output_sizes", "paddings",
          "shape", "shifts", "strides"}) {
      absl::StrAppend(
          &attrs, Longs(several, absl::StrCat(number, ", 1, ", number, ", 1")));
    }
    for (const char* const type :
         {"argsort", "channel_shuffle", "crop_tensor", "diag_embed", "diagonal",
          "eye", "fold", "frobenius_norm", "kron", "maxout",
          "repeat_interleave", "roll", "temporal_shift", "tile", "trace",
          "tril_triu", "unfold"}) {
      for (const std::string& dims :
           {absl::StrCat(number, ", 2, ", number, ", 2"),
            std::string("-1, 4, 4, 4")}) {
        const std::string program = absl::StrCat(
            Var("x", dims), Var("y", dims), Var("out", ""),
            Op(type, {"X:x", "Y:y", "Input:x"}, {"Out:out", "Y:out"}, attrs));
        EXPECT_THAT(Text(program),
                    AnyOf(HasSubstr("\"out\""), HasSubstr("net.pdmodel: ")))
            << type << " of " << dims;
      }
    }
  }
}

}  // namespace
}  // namespace halftone
