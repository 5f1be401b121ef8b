#include <limits>

#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;
using Attrs = std::vector<std::pair<std::string, AttrValue>>;

TEST(Slice, CutsAxes) {
  const auto slice = [](std::string x, Attrs attrs) {
    return Infer({"slice", {{"Input", x}}, attrs});
  };
  const auto one = [&](int64_t axis, int64_t start, int64_t end) {
    return slice(
        "f32[B,8]",
        {{"axes", Ints{axis}}, {"starts", Ints{start}}, {"ends", Ints{end}}});
  };
  EXPECT_EQ(one(1, 2, 5), "Out=f32[B,3]");
  EXPECT_EQ(one(-1, -3, 8), "Out=f32[B,3]");
  EXPECT_EQ(one(1, 0, -1), "Out=f32[B,7]");
  EXPECT_EQ(one(1, 5, 2), "Out=f32[B,0]");
  EXPECT_EQ(one(1, 0, 100), "Out=f32[B,8]");
  EXPECT_EQ(one(1, -100, std::numeric_limits<int64_t>::max()), "Out=f32[B,8]");
  EXPECT_EQ(one(0, 0, std::numeric_limits<int32_t>::max()), "Out=f32[B,8]");
  EXPECT_EQ(one(0, 1, 3),
            "op (slice): slot Input: expected a constant dim 0, found "
            "f32[B,8]; a symbolic dim can only be taken whole");
  EXPECT_EQ(slice("f32[B,8]", {}), "Out=f32[B,8]");
  EXPECT_EQ(slice("f32[8,8]", {{"starts", Ints{2, 3}}}), "Out=f32[6,5]");
  EXPECT_EQ(slice("f32[B,8,4]", {{"axes", Ints{1, 2}},
                                 {"starts", Ints{7, 0}},
                                 {"ends", Ints{8, 2}},
                                 {"decrease_axis", Ints{1}}}),
            "Out=f32[B,2]");
}

TEST(Slice, Errors) {
  const auto slice = [](std::string x, Attrs attrs) {
    return Infer({"slice", {{"Input", x}}, attrs});
  };
  EXPECT_THAT(slice("f32[B,8]", {{"axes", Ints{1, 1}}}),
              HasSubstr("attribute axes: expected different axes"));
  EXPECT_THAT(slice("f32[B,8]", {{"axes", Ints{2}}}),
              HasSubstr("from -2 to 1"));
  EXPECT_THAT(slice("f32[]", {{"axes", Ints{0}}}),
              HasSubstr("[] for a scalar"));
  EXPECT_THAT(slice("f32[B,8]", {{"axes", Ints{1}}, {"starts", Ints{0, 1}}}),
              HasSubstr("attribute starts: expected 1 integers"));
  EXPECT_THAT(slice("f32[B,8]", {{"decrease_axis", Ints{1}}}),
              HasSubstr("axes of which one element is left"));
}

TEST(StridedSlice, StepsEitherWay) {
  const auto slice = [](int64_t start, int64_t end, int64_t stride) {
    return Infer({"strided_slice",
                  {{"Input", "f32[B,8]"}},
                  {{"axes", Ints{1}},
                   {"starts", Ints{start}},
                   {"ends", Ints{end}},
                   {"strides", Ints{stride}}}});
  };
  EXPECT_EQ(slice(0, 8, 3), "Out=f32[B,3]");
  EXPECT_EQ(slice(1, 7, 2), "Out=f32[B,3]");
  EXPECT_EQ(slice(7, -1, -1), "Out=f32[B,8]");
  EXPECT_EQ(slice(-1, -9, -3), "Out=f32[B,3]");
  EXPECT_EQ(slice(100, 0, -2), "Out=f32[B,4]");
  EXPECT_EQ(slice(0, 4, -1), "Out=f32[B,0]");
  EXPECT_THAT(slice(0, 4, 0), HasSubstr("attribute strides"));
  // Backwards through a batch.
  EXPECT_EQ(Infer({"strided_slice",
                   {{"Input", "f32[B,8]"}},
                   {{"starts", Ints{-1}},
                    {"ends", Ints{std::numeric_limits<int64_t>::min()}},
                    {"strides", Ints{-1}}}}),
            "Out=f32[B,8]");
}

TEST(Slice, GradientPads) {
  EXPECT_EQ(
      GradientInAllTypes(
          {"slice",
           {{"Input", "T[B,8]"}},
           {{"axes", Ints{-1}}, {"starts", Ints{-3}}, {"ends", Ints{-1}}}}),
      "pad_like(X=dOut, Like=Input) {axes=[-1] starts=[-3] ends=[-1]} -> "
      "Input.grad : f16[B,8]\nInput <- Input.grad\n");
}

Call PadLike(std::string x, std::string like, int64_t start, int64_t end,
             int64_t stride = 1) {
  return {"pad_like",
          {{"X", x}, {"Like", like}},
          {{"axes", Ints{1}},
           {"starts", Ints{start}},
           {"ends", Ints{end}},
           {"strides", Ints{stride}}}};
}

TEST(PadLike, FitsIntoLike) {
  EXPECT_EQ(Infer(PadLike("f32[B,3]", "f16[B,8]", 5, 8)), "Out=f32[B,8]");
  EXPECT_EQ(Infer(PadLike("f32[B,0]", "f16[B,8]", 8, 8)), "Out=f32[B,8]");
  EXPECT_EQ(Infer(PadLike("f32[B,3]", "f16[B,8]", 7, 0, -3)), "Out=f32[B,8]");
  EXPECT_EQ(Infer(PadLike("f32[B,3]", "f16[B,8]", 6, 9)),
            "op (pad_like): slot X: expected dims [B,2] (those of Like, "
            "f16[B,8], cut as the attributes say), found f32[B,3]; change its "
            "dims or those of the slots named");
  EXPECT_THAT(Infer(PadLike("f32[B,3]", "f16[S,8]", 0, 3)),
              HasSubstr("slot X"));
}

TEST(PadLike, GradientIsASlice) {
  EXPECT_EQ(GradientInAllTypes(PadLike("T[B,3]", "f32[B,8]", 5, 8)),
            "strided_slice(Input=dOut) {axes=[1] starts=[5] ends=[8] "
            "strides=[1]} -> X.grad : f16[B,3]\nX <- X.grad\n");
}

TEST(Flip, IsItsOwnGradient) {
  EXPECT_EQ(
      GradientInAllTypes({"flip", {{"X", "T[B,8]"}}, {{"axis", Ints{0, -1}}}}),
      "flip(X=dOut) {axis=[0,-1]} -> X.grad : f16[B,8]\n"
      "X <- X.grad\n");
  EXPECT_THAT(Infer({"flip", {{"X", "f32[B]"}}, {{"axis", Ints{1}}}}),
              HasSubstr("attribute axis"));
}

}  // namespace
}  // namespace ops
}  // namespace halftone
