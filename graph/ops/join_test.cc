#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;

TEST(Concat, AddsUpTheAxis) {
  const auto concat = [](std::string x, int64_t axis) {
    return Infer({"concat", {{"X", x}}, {{"axis", axis}}});
  };
  EXPECT_EQ(concat("f32[B,4] f32[B,3] f32[B,0]", 1), "Out=f32[B,7]");
  EXPECT_EQ(concat("f32[B,4] f32[B,4]", 0), "Out=f32[B*2,4]");
  EXPECT_EQ(concat("f32[B,4] f32[B,3]", -1), "Out=f32[B,7]");
  EXPECT_EQ(concat("f32[B,4] f32[S,4]", 0),
            "op (concat): slot X[1]: expected the dims of X[0], f32[B,4], but "
            "along axis 0, found f32[S,4]; symbolic and constant dims cannot "
            "be added up");
  EXPECT_THAT(concat("f32[B,4] f32[B,4,1]", 1), HasSubstr("slot X[1]"));
  EXPECT_THAT(concat("f32[B,4] f32[S,4]", 1), HasSubstr("slot X[1]"));
  EXPECT_THAT(concat("f32[B,4]", 2), HasSubstr("attribute axis"));
  EXPECT_EQ(concat("f32[B,4,2,2]@channels_last f32[B,3,2,2]@channels_last", 1),
            "Out=f32[B,7,2,2] @channels_last");
  EXPECT_THAT(concat("f32[B,4,2,2]@channels_last f32[B,3,2,2]", 1),
              HasSubstr("slot X[1]: expected channels_last as X[0]"));
}

TEST(Concat, GradientsAreSlices) {
  Call call = {"concat", {{"X", "T[B,4] T[B,3]"}}, {{"axis", -1}}};
  EXPECT_EQ(GradientInAllTypes(call),
            "slice(Input=dOut) {axes=[1] starts=[0] ends=[4]} -> X.0.grad : "
            "f16[B,4]\n"
            "slice(Input=dOut) {axes=[1] starts=[4] ends=[7]} -> X.1.grad : "
            "f16[B,3]\n"
            "X.0 <- X.0.grad\nX.1 <- X.1.grad\n");
}

TEST(Concat, GradientAlongTheBatchIsOneOp) {
  EXPECT_EQ(GradientInAllTypes({"concat", {{"X", "T[B,4] T[B*3,4] T[0,4]"}}}),
            "concat_grad(OutGrad=dOut, X=X.0 X.1 X.2) -> X.0.grad : f16[B,4], "
            "X.1.grad : f16[B*3,4], X.2.grad : f16[0,4]\n"
            "X.0 <- X.0.grad\nX.1 <- X.1.grad\nX.2 <- X.2.grad\n");
  const Call wrong = {"concat_grad",
                      {{"OutGrad", "f32[B*2,4]"}, {"X", "f32[B,4] f32[B,3]"}}};
  EXPECT_THAT(Infer(wrong), HasSubstr("slot X[1]"));
  EXPECT_THAT(Infer({"concat_grad",
                     {{"OutGrad", "f32[B*3,4]"}, {"X", "f32[B,4] f32[B,4]"}}}),
              HasSubstr("slot OutGrad: expected dims [B*2,4]"));
}

TEST(Split, CutsIntoParts) {
  const auto split = [](std::string x, int count, Ints sections, int64_t axis,
                        int64_t num = 0) {
    return Infer({"split",
                  {{"X", x}},
                  {{"sections", sections}, {"axis", axis}, {"num", num}},
                  {{"Out", count}}});
  };
  EXPECT_EQ(split("f16[B,6]", 2, {}, 1, 2), "Out=f16[B,3] f16[B,3]");
  EXPECT_EQ(split("f16[B*4,6]", 2, {}, 0), "Out=f16[B*2,6] f16[B*2,6]");
  EXPECT_EQ(split("f16[B,6]", 3, {1, -1, 2}, -1),
            "Out=f16[B,1] f16[B,3] f16[B,2]");
  EXPECT_THAT(split("f16[B,6]", 2, {1, 2}, 1), HasSubstr("make up the axis"));
  EXPECT_THAT(split("f16[B,6]", 2, {3, 4}, 1), HasSubstr("make up the axis"));
  EXPECT_THAT(split("f16[B,6]", 3, {3, 3}, 1), HasSubstr("3 extents"));
  EXPECT_THAT(split("f16[B,6]", 4, {}, 1), HasSubstr("attribute num"));
  EXPECT_THAT(split("f16[B,6]", 2, {}, 1, 3), HasSubstr("attribute num"));
  EXPECT_THAT(split("f16[B,6]", 2, {1, 1}, 0), HasSubstr("axis varies"));
}

// What nothing reads has a gradient of zeros.
TEST(Split, GradientIsAJoin) {
  EXPECT_EQ(GradientInAllTypes(
                {"split", {{"X", "T[B,6]"}}, {{"axis", 1}}, {{"Out", 2}}}),
            "fill_zeros_like(X=op.Out.1) -> op.grad.Out : f16[B,3]\n"
            "concat(X=dOut op.grad.Out) {axis=1} -> X.grad : f16[B,6]\n"
            "X <- X.grad\n");
}

TEST(Stack, AddsAnAxis) {
  const auto stack = [](std::string x, int64_t axis) {
    return Infer({"stack", {{"X", x}}, {{"axis", axis}}});
  };
  EXPECT_EQ(stack("f16[B,4] f16[B,4]", 0), "Y=f16[2,B,4]");
  EXPECT_EQ(stack("f16[B,4] f16[B,4] f16[B,4]", -1), "Y=f16[B,4,3]");
  EXPECT_THAT(stack("f16[B,4] f16[B,3]", 0), HasSubstr("slot X[1]"));
  EXPECT_THAT(stack("f16[B,4]", 3), HasSubstr("attribute axis"));
}

TEST(Unstack, DropsAnAxis) {
  const auto unstack = [](std::string x, int64_t axis, int count) {
    return Infer({"unstack", {{"X", x}}, {{"axis", axis}}, {{"Y", count}}});
  };
  EXPECT_EQ(unstack("f16[B,2,4]", 1, 2), "Y=f16[B,4] f16[B,4]");
  EXPECT_THAT(unstack("f16[B,2,4]", -1, 2),
              HasSubstr("slot X: expected an extent of 2 along axis 2"));
}

}  // namespace
}  // namespace ops
}  // namespace halftone
