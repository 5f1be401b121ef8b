// (That they compute what Paddle does: tests/cli/paddle_oracle_test.)
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/import/paddle_import_testing.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using paddle_testing::Op;
using paddle_testing::Param;
using paddle_testing::Text;
using paddle_testing::Var;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Number(const char* name, const char* value) {
  return Op("fill_constant", {}, {absl::StrCat("Out:", name)},
            absl::StrCat("attrs { name: 'str_value' type: STRING s: '", value,
                         "' } attrs { name: 'shape' type: LONGS longs: 1 } "));
}
// The dim of `x` in a place.
std::string DimOf(const std::string& x, const char* name, int place) {
  return Op("shape", {absl::StrCat("Input:", x)},
            {absl::StrCat("Out:", name, ".s")}) +
         Op("slice", {absl::StrCat("Input:", name, ".s")},
            {absl::StrCat("Out:", name)},
            absl::StrCat("attrs { name: 'axes' type: INTS ints: 0 } "
                         "attrs { name: 'starts' type: INTS ints: ",
                         place, " } attrs { name: 'ends' type: INTS ints: ",
                         place + 1, " } "));
}

// An op on x, [B, 6, 4], on y, [6 B, 4], on w, [1, 1, 4], or on nothing. Its
// shape is of b, x's first dim, of six, its second, rows, their
// product, and of n, a number.
std::string Shaped(const char* type, const char* x, const char* slot,
                   const std::string& sizes, const char* n = "-1") {
  return Text(absl::StrCat(
      Var("x", "-1, 6, 4"), Param("w", "1, 1, 4"), Var("out", "-1, -1"),
      Var("y", "-1, 4"), Var("b", "", "", "INT32"), Var("n", "1", "", "INT32"),
      Var("rows", "", "", "INT32"), Var("six", "", "", "INT32"),
      DimOf("x", "b", 0), DimOf("x", "six", 1), Number("n", n),
      Op("elementwise_mul", {"X:b", "Y:six"}, {"Out:rows"}),
      Op("reshape2", {"X:x"}, {"Out:y"},
         "attrs { name: 'shape' type: INTS ints: [-1, 4] } "),
      Op(type,
         x == nullptr
             ? std::vector<std::string>{absl::StrCat(slot, ":", sizes)}
             : std::vector<std::string>{absl::StrCat("X:", x),
                                        absl::StrCat(slot, ":", sizes)},
         {"Out:out"},
         x == nullptr ? "attrs { name: 'value' type: FLOAT f: 2 } " : ""),
      Op("fetch", {"X:out"}, {"Out:fetch"})));
}

TEST(PaddleShapesTest, ReshapesByDimsOfValues) {
  EXPECT_THAT(Shaped("reshape2", "x", "ShapeTensor", "b,n", "24"),
              AllOf(HasSubstr("ints: [-1, 24]"), Not(HasSubstr("slice"))));
  EXPECT_THAT(Shaped("reshape2", "x", "ShapeTensor", "b,n"),
              HasSubstr("ints: [0, -1]"));
  EXPECT_THAT(Shaped("reshape2", "y", "ShapeTensor", "b,six,n", "4"),
              HasSubstr("ints: [-1, 6, 4]"));
  EXPECT_THAT(Shaped("reshape2", "x", "ShapeTensor", "rows,n", "4"),
              HasSubstr("ints: [-1, 4]"));
  EXPECT_THAT(Shaped("reshape2", "x", "ShapeTensor", "rows,n"),
              HasSubstr("the batch stands in such a place"));
  // y has six times as many rows as x, which -1 beside 0 would hide.
  EXPECT_THAT(Shaped("reshape2", "y", "ShapeTensor", "b,n"),
              HasSubstr("expected y to have the first dim of x"));
  EXPECT_THAT(Shaped("reshape2", "x", "ShapeTensor", "b,b"),
              HasSubstr("the batch stands in such a place"));
  EXPECT_THAT(Shaped("reshape2", "x", "ShapeTensor", "b,x"),
              HasSubstr("constants and dims of values, found x"));
}

TEST(PaddleShapesTest, WhatIsRepeatedAsTheBatchTakesZeros) {
  EXPECT_THAT(
      Shaped("expand_v2", "w", "expand_shapes_tensor", "b,n,n"),
      AllOf(HasSubstr("ints: [1, -1, -1]"), HasSubstr("fill_zeros_like"),
            HasSubstr(R"(type: "elementwise_add")")));
  EXPECT_THAT(
      Shaped("expand_v2", "x", "expand_shapes_tensor", "b,six,n"),
      AllOf(HasSubstr("ints: [-1, 6, -1]"), Not(HasSubstr("elementwise_add"))));
}

TEST(PaddleShapesTest, TilesAsTheBatchIs) {
  EXPECT_THAT(
      Shaped("tile", "w", "repeat_times_tensor", "b,six,n", "2"),
      AllOf(HasSubstr("ints: [1, 6, 2]"), HasSubstr("fill_zeros_like"),
            HasSubstr("ints: [1, 1, 6, 8]"), HasSubstr("ints: [-1, 6, 8]")));
  // One sample after the other, each of two times four.
  EXPECT_THAT(
      Shaped("tile", "w", "repeat_times_tensor", "six,n,b", "2"),
      AllOf(HasSubstr("ints: [6, 2, 1]"), HasSubstr("ints: [6, 2, 1, 4]"),
            HasSubstr("ints: [6, 2, -1]")));
  EXPECT_THAT(
      Shaped("tile", "w", "repeat_times_tensor", "rows", "2"),
      AllOf(HasSubstr("ints: [1, 1, 6]"), HasSubstr("ints: [1, 1, -1]")));
  EXPECT_THAT(Shaped("tile", "w", "repeat_times_tensor", "six,n,n", "2"),
              AllOf(HasSubstr("ints: [6, 2, 2]"), Not(HasSubstr("zeros"))));
  EXPECT_THAT(Shaped("tile", "w", "repeat_times_tensor", "b,b,n", "2"),
              HasSubstr("the batch stands in such a place"));
  for (const auto& [x, n] : {std::pair("x", "2"), {"w", "0"}}) {
    EXPECT_THAT(Shaped("tile", x, "repeat_times_tensor", "b,n,n", n),
                HasSubstr("expected dims and times of 1 or more"));
  }
}

TEST(PaddleShapesTest, Fills) {
  EXPECT_THAT(Shaped("fill_constant", nullptr, "ShapeTensorList", "six,six"),
              HasSubstr("ints: [6, 6]"));
  EXPECT_THAT(Shaped("fill_constant", nullptr, "ShapeTensorList", "b,six"),
              AllOf(HasSubstr("fill_zeros_like"), HasSubstr("ints: [-1, 6]")));
  EXPECT_THAT(
      Text(Var("x", "-1, 6, 4") + Var("out", "-1, 6, 4") +
           Op("fill_constant_batch_size_like", {"Input:x"}, {"Out:out"},
              "attrs { name: 'shape' type: INTS ints: [-1, 6, 4] } "
              "attrs { name: 'value' type: FLOAT f: 2 } ")),
      AllOf(HasSubstr("fill_zeros_like"), HasSubstr(R"(name: "bias" f: 2)"),
            HasSubstr("ints: [-1, 6, 4]")));
}

// The output of `op`, after sizes: s, x's shape; six and b, dims of it; two, a
// number; four, six - two; rows, b * six; again, rows / six.
std::string WithSizes(const std::string& op) {
  const std::string sizes = absl::StrCat(
      Var("x", "-1, 6, 4"), Var("out", "-1, -1"), Var("s", "3", "", "INT32"),
      Op("shape", {"Input:x"}, {"Out:s"}), DimOf("x", "six", 1),
      DimOf("x", "b", 0), Number("two", "2"));
  const auto made = [](const char* type, const char* x, const char* y,
                       const char* out) {
    return Op(type, {absl::StrCat("X:", x), absl::StrCat("Y:", y)},
              {absl::StrCat("Out:", out)});
  };
  std::string ints;
  for (const char* const name : {"six", "b", "two", "four", "rows", "again"}) {
    absl::StrAppend(&ints, Var(name, "1", "", "INT32"));
  }
  return Text(absl::StrCat(ints, sizes,
                           made("elementwise_sub", "six", "two", "four"),
                           made("elementwise_mul", "b", "six", "rows"),
                           made("elementwise_floordiv", "rows", "six", "again"),
                           Op("concat", {"X:again,four,six"}, {"Out:joined"},
                              "attrs { name: 'axis' type: INT i: 0 } "),
                           Var("joined", "3", "", "INT32"), op,
                           Op("fetch", {"X:out"}, {"Out:fetch"})));
}
std::string Ints(const char* name, const char* values) {
  return absl::StrCat("attrs { name: '", name, "' type: INTS ints: [", values,
                      "] } ");
}

TEST(PaddleShapesTest, SizesAreComputed) {
  EXPECT_THAT(WithSizes(Op("reshape2", {"X:x", "Shape:joined"}, {"Out:out"})),
              HasSubstr("ints: [-1, 4, 6]"));
  EXPECT_THAT(WithSizes(Op("reshape2", {"X:x", "Shape:s"}, {"Out:out"})),
              HasSubstr("ints: [-1, 6, 4]"));
  EXPECT_THAT(
      WithSizes(Op("fill_constant", {"ShapeTensor:s"}, {"Out:out"},
                   "attrs { name: 'value' type: FLOAT f: 2 } ")),
      AllOf(HasSubstr("fill_zeros_like"), HasSubstr("ints: [-1, 6, 4]")));
  EXPECT_THAT(
      WithSizes(Op("range", {"Start:two", "End:six", "Step:two"}, {"Out:out"})),
      AllOf(HasSubstr("name: \"start\" f: 2"), HasSubstr("\"end\" f: 6")));
  EXPECT_THAT(
      WithSizes(Op("range", {"Start:two", "End:b", "Step:two"}, {"Out:out"})),
      HasSubstr("input End: expected a constant"));
  // The numbers of the samples.
  EXPECT_THAT(
      WithSizes(Number("none", "0") + Number("one", "1") +
                Op("range", {"Start:none", "End:b", "Step:one"}, {"Out:out"})),
      AllOf(HasSubstr("\"cumsum\""), HasSubstr("\"exclusive\"")));
}

// Of theta, [B, 2, 3], or other dims, to an image of [B, 2, 3, 5].
std::string Affine(const char* theta, const char* shape,
                   const std::string& before = "") {
  return Text(absl::StrCat(
      Var("theta", theta), Var("out", "-1, 3, 5, 2"), before,
      Op("affine_grid",
         before.empty()
             ? std::vector<std::string>{"Theta:theta"}
             : std::vector<std::string>{"Theta:theta", "OutputShape:size"},
         {"Output:out"}, Ints("output_shape", shape)),
      Op("fetch", {"X:out"}, {"Out:fetch"})));
}

TEST(PaddleShapesTest, AffineGridsAreProductsWithThePixelsPlaces) {
  EXPECT_THAT(
      Affine("-1, 2, 3", "-1, 2, 3, 5"),
      AllOf(HasSubstr("\"matmul\""), HasSubstr("ints: [3, 5]"),
            HasSubstr("ints: [-1, 3, 5, 2]"),
            // Five pixels are half apart.
            HasSubstr("name: \"scale\" f: 0.5"),
            // x comes first.
            HasSubstr("var: \"out.arange\" } attr { name: \"end\" f: 5"),
            HasSubstr("in { slot: \"X\" var: \"out.reshape2.1\" var: "
                      "\"out.reshape2.3\" var: \"out.scale.2\" }")));
  // One alone is in the middle.
  EXPECT_THAT(Affine("-1, 2, 3", "-1, 2, 1, 5"),
              HasSubstr("name: \"scale\" f: 0 }"));

  EXPECT_THAT(Affine("-1, 2, 3", "",
                     absl::StrCat(Var("y", "-1, 2, 3, 5"),
                                  Var("size", "4", "", "INT32"),
                                  Op("shape", {"Input:y"}, {"Out:size"}))),
              HasSubstr("ints: [-1, 3, 5, 2]"));
  EXPECT_THAT(Affine("-1, 3, 4", "-1, 2, 3, 5"),
              HasSubstr("expected [N, 2, 3]"));
  for (const char* const shape :
       {"", "-1, 2, 3", "-1, 2, 0, 5", "-1, 2, 3, -1", "1, 1, 4096, 4096",
        "1, 1, 2147483647, 2147483647"}) {
    EXPECT_THAT(Affine("-1, 2, 3", shape),
                HasSubstr("expected an output shape of"))
        << shape;
  }
}

TEST(PaddleShapesTest, SlicesByComputedBounds) {
  const std::string inner =
      Ints("axes", "1") + Ints("starts", "0") + Ints("ends", "-1");
  EXPECT_THAT(WithSizes(Op("slice", {"Input:x", "EndsTensorList:four"},
                           {"Out:out"}, inner)),
              HasSubstr("name: \"ends\" ints: [4]"));
  EXPECT_THAT(WithSizes(Op("slice", {"Input:x", "EndsTensorList:b"},
                           {"Out:out"}, inner)),
              HasSubstr("the batch stands in such a place"));
  // Up to its own end.
  EXPECT_THAT(
      WithSizes(
          Op("slice", {"Input:x", "EndsTensorList:again"}, {"Out:out"},
             Ints("axes", "0") + Ints("starts", "0") + Ints("ends", "-1"))),
      HasSubstr("2147483647"));
}

}  // namespace
}  // namespace halftone
