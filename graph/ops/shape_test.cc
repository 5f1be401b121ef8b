#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;
using Attrs = std::vector<std::pair<std::string, AttrValue>>;

std::string Reshape(std::string x, Ints shape) {
  return Infer({"reshape", {{"X", x}}, {{"shape", shape}}});
}

TEST(Reshape, InfersOneDim) {
  EXPECT_EQ(Reshape("f32[B,32,7,7]", {-1, 1568}), "Out=f32[B,1568]");
  EXPECT_EQ(Reshape("f32[B,32,7,7]", {0, -1}), "Out=f32[B,1568]");
  EXPECT_EQ(Reshape("f32[B*128,768]", {-1, 128, 12, 64}),
            "Out=f32[B,128,12,64]");
  EXPECT_EQ(Reshape("f16[B,S,12,64]", {0, 0, 768}), "Out=f16[B,S,768]");
  EXPECT_EQ(Reshape("f16[B,S,768]", {-1, 768}), "Out=f16[B*S,768]");
  EXPECT_EQ(Reshape("i64[B,1]", {-1}), "Out=i64[B]");
  EXPECT_EQ(Reshape("f32[1,1]", {}), "Out=f32[]");
  EXPECT_EQ(Reshape("f32[]", {1, -1}), "Out=f32[1,1]");
}

TEST(Reshape, EmptyTensors) {
  EXPECT_EQ(Reshape("f32[0,4]", {-1, 2}), "Out=f32[0,2]");
  EXPECT_EQ(Reshape("f32[0,4]", {0, -1}), "Out=f32[0,4]");
  EXPECT_EQ(Reshape("f32[0,4]", {0, 2, 2}), "Out=f32[0,2,2]");
}

TEST(Reshape, Errors) {
  EXPECT_EQ(Reshape("f32[B,32]", {31, 32}),
            "op (reshape): attribute shape: expected as many elements as X "
            "has for X, f32[B,32], found [31, 32]; use -1 or 0 for a dim that "
            "varies, as the batch does");
  EXPECT_EQ(Reshape("f32[B,32]", {-1, 5}),
            "op (reshape): attribute shape: expected elements that divide "
            "exactly for X, f32[B,32], found [-1, 5]; change the dims beside "
            "-1");
  EXPECT_EQ(Reshape("f32[B,32]", {-1, -1}),
            "op (reshape): attribute shape: expected dims from 1 up, 0 (the "
            "dim of X in that place) and at most one -1 for X, f32[B,32], "
            "found [-1, -1]; write each dim");
  EXPECT_THAT(Reshape("f32[B,32]", {0, 0, 0}), HasSubstr("attribute shape"));
  EXPECT_THAT(Reshape("f32[B,32]", {-2, 16}), HasSubstr("attribute shape"));
  EXPECT_THAT(Reshape("f32[B,32]", {INT64_MAX, INT64_MAX}),
              HasSubstr("attribute shape"));
}

TEST(ReshapeLike, TakesTheDimsOfLike) {
  EXPECT_EQ(
      Infer({"reshape_like", {{"X", "f16[B*4]"}, {"Like", "i64[B,2,2]"}}}),
      "Out=f16[B,2,2]");
  EXPECT_EQ(Infer({"reshape_like", {{"X", "f16[B*4]"}, {"Like", "f16[S,4]"}}}),
            "op (reshape_like): slot X: expected as many elements as Like, "
            "f16[S,4], found f16[B*4]; their products of dims must be equal");
}

TEST(PadChannels, TakesConstantChannels) {
  const auto pad = [](const char* x, int64_t channels) {
    return Infer({"pad_channels", {{"X", x}}, {{"channels", channels}}});
  };
  EXPECT_EQ(pad("f16[B,3,8,8]", 8), "Out=f16[B,8,8,8] @channels_last");
  EXPECT_EQ(pad("f16[B,8,8,8]", 8), "Out=f16[B,8,8,8] @channels_last");
  EXPECT_EQ(pad("f16[B,3,8,8]", 2),
            "op (pad_channels): attribute channels: expected at least the "
            "channels of X, f16[B,3,8,8], found 2");
  EXPECT_THAT(pad("f16[8,B,8,8]", 8), HasSubstr("attribute channels"));
  EXPECT_THAT(pad("f16[B,8,8]", 8), HasSubstr("slot X"));
}

TEST(Flatten, JoinsDims) {
  const auto flatten = [](std::string x, Attrs attrs = {}) {
    return Infer({"flatten", {{"X", x}}, attrs});
  };
  EXPECT_EQ(flatten("f32[B,32,7,7]"), "Out=f32[B,1568]");
  EXPECT_EQ(flatten("f32[B,S,768]", {{"start_axis", 0}, {"stop_axis", 1}}),
            "Out=f32[B*S,768]");
  EXPECT_EQ(flatten("f32[B,4]"), "Out=f32[B,4]");
  EXPECT_EQ(flatten("f32[]"), "Out=f32[1]");
  EXPECT_EQ(flatten("f32[B,4]", {{"start_axis", -1}, {"stop_axis", 0}}),
            "op (flatten): attribute start_axis: expected at most stop_axis, "
            "0, found -1");
  EXPECT_EQ(flatten("f32[B,4]", {{"stop_axis", 2}}),
            "op (flatten): attribute stop_axis: expected an axis from -2 to "
            "1, found 2");
}

TEST(Reshapes, GradientsAreReshapes) {
  const char* const expected =
      "reshape_like(X=dOut, Like=X) -> X.grad : f16[B,4,S]\nX <- X.grad\n";
  EXPECT_EQ(GradientInAllTypes(
                {"reshape", {{"X", "T[B,4,S]"}}, {{"shape", Ints{0, -1}}}}),
            expected);
  EXPECT_EQ(GradientInAllTypes({"flatten", {{"X", "T[B,4,S]"}}}), expected);
  EXPECT_EQ(GradientInAllTypes(
                {"reshape_like", {{"X", "T[B,4,S]"}, {"Like", "i64[B*S*4]"}}}),
            expected);
}

TEST(Transpose, PermutesDims) {
  const auto transpose = [](std::string x, Ints axis) {
    return Infer({"transpose", {{"X", x}}, {{"axis", axis}}});
  };
  EXPECT_EQ(transpose("f16[B,S,12,64]", {0, 2, 1, 3}), "Out=f16[B,12,S,64]");
  EXPECT_EQ(transpose("i64[B,4]", {-1, 0}), "Out=i64[4,B]");
  EXPECT_EQ(transpose("f32[B,4]", {0, 0}),
            "op (transpose): attribute axis: expected each axis of X, "
            "f32[B,4], once, found [0, 0]");
  EXPECT_THAT(transpose("f32[B,4]", {0}), HasSubstr("found [0]"));
  EXPECT_THAT(transpose("f32[B,4]", {0, 2}), HasSubstr("found [0, 2]"));
  EXPECT_THAT(Infer({"transpose", {{"X", "f32[B,4]"}}}),
              HasSubstr("attribute axis: expected ints, found nothing"));
}

TEST(Transpose, GradientIsTheInverse) {
  EXPECT_EQ(GradientInAllTypes(
                {"transpose", {{"X", "T[B,S,4]"}}, {{"axis", Ints{1, -1, 0}}}}),
            "transpose(X=dOut) {axis=[2,0,1]} -> X.grad : f16[B,S,4]\n"
            "X <- X.grad\n");
}

TEST(Squeeze, DropsDimsOfOne) {
  const auto squeeze = [](std::string x, Ints axes) {
    return Infer({"squeeze2", {{"X", x}}, {{"axes", axes}}});
  };
  EXPECT_EQ(squeeze("f16[B,1,4,1]", {}), "Out=f16[B,4]");
  EXPECT_EQ(squeeze("f16[B,1,4,1]", {1}), "Out=f16[B,4,1]");
  EXPECT_EQ(squeeze("f16[B,1,4,1]", {-1, 2, 0}), "Out=f16[B,1,4]");
  EXPECT_THAT(squeeze("f16[B,1]", {2}), HasSubstr("attribute axes"));
  EXPECT_EQ(GradientInAllTypes({"squeeze", {{"X", "T[B,1]"}}}),
            "reshape_like(X=dOut, Like=X) -> X.grad : f16[B,1]\n"
            "X <- X.grad\n");
}

TEST(Unsqueeze, AddsDimsOfOne) {
  const auto unsqueeze = [](std::string x, Ints axes) {
    return Infer({"unsqueeze2", {{"X", x}}, {{"axes", axes}}});
  };
  EXPECT_EQ(unsqueeze("f16[B,4]", {1}), "Out=f16[B,1,4]");
  EXPECT_EQ(unsqueeze("f16[B,4]", {0, 3}), "Out=f16[1,B,4,1]");
  EXPECT_EQ(unsqueeze("f16[]", {-1}), "Out=f16[1]");
  EXPECT_THAT(unsqueeze("f16[B]", {2}), HasSubstr("attribute axes"));
}

}  // namespace
}  // namespace ops
}  // namespace halftone
