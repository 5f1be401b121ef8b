#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;

Call Binary(std::string type, std::string x, std::string y, int64_t axis = -1) {
  Call call = {"elementwise_" + type, {{"X", x}, {"Y", y}}};
  if (axis != -1) call.attrs.emplace_back("axis", axis);
  return call;
}

TEST(Binary, BroadcastsTheLastDims) {
  EXPECT_EQ(Infer(Binary("add", "f32[B,4]", "f32[B,4]")), "Out=f32[B,4]");
  EXPECT_EQ(Infer(Binary("sub", "f32[B,S,4]", "f32[4]")), "Out=f32[B,S,4]");
  EXPECT_EQ(Infer(Binary("mul", "f32[4]", "f32[B,1]")), "Out=f32[B,4]");
  EXPECT_EQ(Infer(Binary("div", "f16[B,S]", "f16[]")), "Out=f16[B,S]");
  EXPECT_EQ(Infer(Binary("add", "f32[1,S]", "f32[B,1]")), "Out=f32[B,S]");
  EXPECT_EQ(Infer(Binary("add", "f32[0,4]", "f32[1,4]")), "Out=f32[0,4]");
}

TEST(Binary, BroadcastsFromAnAxis) {
  EXPECT_EQ(Infer(Binary("add", "f32[B,8,5,5]", "f32[8]", 1)),
            "Out=f32[B,8,5,5]");
  EXPECT_EQ(Infer(Binary("add", "f32[B,8,5,5]", "f32[B,8]", 0)),
            "Out=f32[B,8,5,5]");
  EXPECT_EQ(Infer(Binary("add", "f32[B,8,5,5]", "f32[8,1,1,1]", 1)),
            "Out=f32[B,8,5,5]");
  EXPECT_EQ(Infer(Binary("add", "f32[B,8]", "f32[]", 2)), "Out=f32[B,8]");
}

TEST(Binary, KeepsTheLayout) {
  EXPECT_EQ(Infer(Binary("add", "f32[B,8,5,5]@channels_last",
                         "f32[B,8,5,5]@channels_last")),
            "Out=f32[B,8,5,5] @channels_last");
  EXPECT_EQ(Infer(Binary("add", "f32[B,8,5,5]@channels_last", "f32[8]", 1)),
            "Out=f32[B,8,5,5] @channels_last");
}

TEST(Binary, Errors) {
  EXPECT_EQ(Infer(Binary("add", "f32[B,8]", "f32[B]")),
            "op (elementwise_add): slot Y: expected dims that are 1 or equal "
            "those of X, f32[B,8], from the last backwards, found f32[B]; set "
            "axis to the dim of X where Y's first belongs, or reshape one of "
            "them");
  EXPECT_EQ(Infer(Binary("mul", "f32[B,8,5,5]", "f32[5]", 1)),
            "op (elementwise_mul): slot Y: expected dims that are 1 or equal "
            "those of X, f32[B,8,5,5], from dim 1 on, found f32[5]; axis = -1 "
            "aligns the last dims");
  EXPECT_EQ(Infer(Binary("add", "f32[B,8]", "f32[8]", 3)),
            "op (elementwise_add): attribute axis: expected -1 (align the "
            "last dims) or a dim of X, 0 to 2, found 3");
  EXPECT_THAT(Infer(Binary("add", "f32[B]", "f32[S]")), HasSubstr("slot Y"));
  EXPECT_THAT(Infer(Binary("add", "f32[B]", "f32[31]")), HasSubstr("slot Y"));
  EXPECT_THAT(Infer(Binary("add", "i64[B]", "i64[B]")),
              HasSubstr("slot X: expected f32, f16, bf16, found i64[B]"));
}

TEST(Binary, GradientOfEqualDims) {
  EXPECT_EQ(GradientInAllTypes(Binary("add", "T[B,4]", "T[B,4]")),
            "X <- dOut\nY <- dOut\n");
  EXPECT_EQ(GradientInAllTypes(Binary("sub", "T[B,4]", "T[B,4]")),
            "scale(X=dOut) {scale=-1} -> op.grad.Out : f16[B,4]\n"
            "X <- dOut\nY <- op.grad.Out\n");
  EXPECT_EQ(GradientInAllTypes(Binary("mul", "T[B,4]", "T[B,4]")),
            "elementwise_mul(X=dOut, Y=Y) -> op.grad.Out : f16[B,4]\n"
            "elementwise_mul(X=dOut, Y=X) -> op.grad.1.Out : f16[B,4]\n"
            "X <- op.grad.Out\nY <- op.grad.1.Out\n");
  EXPECT_EQ(GradientInAllTypes(Binary("div", "T[B,4]", "T[B,4]")),
            "elementwise_div(X=dOut, Y=Y) -> op.grad.Out : f16[B,4]\n"
            "elementwise_mul(X=op.grad.Out, Y=op.Out) -> op.grad.1.Out : "
            "f16[B,4]\n"
            "scale(X=op.grad.1.Out) {scale=-1} -> op.grad.2.Out : f16[B,4]\n"
            "X <- op.grad.Out\nY <- op.grad.2.Out\n");
}

TEST(Binary, GradientOfABias) {
  EXPECT_EQ(GradientInAllTypes(Binary("add", "T[B,8,5,5]", "T[8]", 1)),
            "reduce_sum(X=dOut) {dim=[0,2,3]} -> Y.grad : f16[8]\n"
            "X <- dOut\nY <- Y.grad\n");
  EXPECT_EQ(GradientInAllTypes(Binary("add", "T[B,8]", "T[8]")),
            "reduce_sum(X=dOut) {dim=[0]} -> Y.grad : f16[8]\n"
            "X <- dOut\nY <- Y.grad\n");
  EXPECT_EQ(GradientInAllTypes(Binary("add", "T[B,8]", "T[]")),
            "reduce_sum(X=dOut) {dim=[0,1]} -> Y.grad : f16[]\n"
            "X <- dOut\nY <- Y.grad\n");
  EXPECT_EQ(GradientInAllTypes(Binary("add", "T[B,8,5,5]", "T[8,1,1,1]", 1)),
            "reduce_sum(X=dOut) {dim=[0,2,3]} -> op.grad.Out : f16[8]\n"
            "reshape_like(X=op.grad.Out, Like=Y) -> Y.grad : f16[8,1,1,1]\n"
            "X <- dOut\nY <- Y.grad\n");
  EXPECT_EQ(GradientInAllTypes(Binary("add", "T[1,8,1]", "T[8,1,1]", 1)),
            "reshape_like(X=dOut, Like=Y) -> Y.grad : f16[8,1,1]\n"
            "X <- dOut\nY <- Y.grad\n");
  EXPECT_EQ(GradientInAllTypes(Binary("add", "T[1,8]", "T[8]")),
            "reshape_like(X=dOut, Like=Y) -> Y.grad : f16[8]\n"
            "X <- dOut\nY <- Y.grad\n");
}

TEST(Binary, GradientWhereBothAreRepeated) {
  EXPECT_EQ(GradientInAllTypes(Binary("mul", "T[1,S]", "T[B,1]")),
            "elementwise_mul(X=dOut, Y=Y) -> op.grad.Out : f16[B,S]\n"
            "reduce_sum(X=op.grad.Out) {dim=[0] keep_dim=true} -> X.grad : "
            "f16[1,S]\n"
            "elementwise_mul(X=dOut, Y=X) -> op.grad.2.Out : f16[B,S]\n"
            "reduce_sum(X=op.grad.2.Out) {dim=[1] keep_dim=true} -> Y.grad : "
            "f16[B,1]\n"
            "X <- X.grad\nY <- Y.grad\n");
}

TEST(Binary, GradientKeepsTheAxis) {
  Call call = Binary("div", "T[B,8,5]", "T[8]", 1);
  EXPECT_EQ(GradientInAllTypes(call),
            "elementwise_div(X=dOut, Y=Y) {axis=1} -> op.grad.Out : "
            "f16[B,8,5]\n"
            "elementwise_mul(X=op.grad.Out, Y=op.Out) -> op.grad.1.Out : "
            "f16[B,8,5]\n"
            "scale(X=op.grad.1.Out) {scale=-1} -> op.grad.2.Out : f16[B,8,5]\n"
            "reduce_sum(X=op.grad.2.Out) {dim=[0,2]} -> Y.grad : f16[8]\n"
            "X <- op.grad.Out\nY <- Y.grad\n");
  call.op = "elementwise_mul";
  call.wanted = {"X"};
  EXPECT_EQ(Gradient(call),
            "elementwise_mul(X=dOut, Y=Y) {axis=1} -> op.grad.Out : "
            "f16[B,8,5]\nX <- op.grad.Out\n");
}

TEST(Binary, GradientsBySlopes) {
  EXPECT_EQ(GradientInAllTypes(Binary("max", "T[B,4]", "T[B,4]")),
            "elementwise_max_by_x(X=X, Y=Y) -> op.grad.Out : f16[B,4]\n"
            "elementwise_mul(X=dOut, Y=op.grad.Out) -> op.grad.1.Out : "
            "f16[B,4]\n"
            "elementwise_max_by_y(X=X, Y=Y) -> op.grad.2.Out : f16[B,4]\n"
            "elementwise_mul(X=dOut, Y=op.grad.2.Out) -> op.grad.3.Out : "
            "f16[B,4]\n"
            "X <- op.grad.1.Out\nY <- op.grad.3.Out\n");
  EXPECT_EQ(GradientInAllTypes(Binary("pow", "T[B,8,5]", "T[8]", 1)),
            "elementwise_pow_by_x(X=X, Y=Y) {axis=1} -> op.grad.Out : "
            "f16[B,8,5]\n"
            "elementwise_mul(X=dOut, Y=op.grad.Out) -> op.grad.1.Out : "
            "f16[B,8,5]\n"
            "elementwise_pow_by_y(X=X, Y=Y) {axis=1} -> op.grad.2.Out : "
            "f16[B,8,5]\n"
            "elementwise_mul(X=dOut, Y=op.grad.2.Out) -> op.grad.3.Out : "
            "f16[B,8,5]\n"
            "reduce_sum(X=op.grad.3.Out) {dim=[0,2]} -> Y.grad : f16[8]\n"
            "X <- op.grad.1.Out\nY <- Y.grad\n");
}

Call Prelu(std::string x, std::string alpha, std::string mode) {
  return {"prelu", {{"X", x}, {"Alpha", alpha}}, {{"mode", mode}}};
}

TEST(Prelu, TakesSlopesByMode) {
  EXPECT_EQ(Infer(Prelu("f32[B,8,5,5]", "f32[1]", "all")), "Out=f32[B,8,5,5]");
  EXPECT_EQ(Infer(Prelu("f32[B,8,5,5]", "f32[8]", "channel")),
            "Out=f32[B,8,5,5]");
  EXPECT_EQ(
      Infer(Prelu("f32[B,8,5,5]@channels_last", "f32[1,8,1,1]", "channel")),
      "Out=f32[B,8,5,5] @channels_last");
  EXPECT_EQ(Infer(Prelu("f32[B,8]", "f32[1,8]", "element")), "Out=f32[B,8]");
  EXPECT_THAT(Infer(Prelu("f32[B,8,5,5]", "f32[8]", "all")),
              HasSubstr("slot Alpha: expected one value, [1], found f32[8]; X "
                        "is f32[B,8,5,5]"));
  EXPECT_THAT(Infer(Prelu("f32[B,8,5,5]", "f32[5]", "channel")),
              HasSubstr("slot Alpha: expected one value per channel"));
  EXPECT_THAT(Infer(Prelu("f32[1,8]", "f32[4,8]", "element")),
              HasSubstr("slot Alpha"));
  EXPECT_THAT(Infer(Prelu("f32[B,8]", "f32[1]", "one")),
              HasSubstr("attribute mode"));
}

TEST(Prelu, GradientOfAlphaIsASum) {
  EXPECT_EQ(GradientInAllTypes(Prelu("T[B,8,5,5]", "T[8]", "channel")),
            "prelu_by_x(X=X, Alpha=Alpha) {mode=channel} -> op.grad.Out : "
            "f16[B,8,5,5]\n"
            "elementwise_mul(X=dOut, Y=op.grad.Out) -> op.grad.1.Out : "
            "f16[B,8,5,5]\n"
            "prelu_by_alpha(X=X, Alpha=Alpha) {mode=channel} -> op.grad.2.Out "
            ": f16[B,8,5,5]\n"
            "elementwise_mul(X=dOut, Y=op.grad.2.Out) -> op.grad.3.Out : "
            "f16[B,8,5,5]\n"
            "reduce_sum(X=op.grad.3.Out) {dim=[0,2,3]} -> Alpha.grad : "
            "f16[8]\n"
            "X <- op.grad.1.Out\nAlpha <- Alpha.grad\n");
}

TEST(Scale, GradientHasTheFactorAlone) {
  EXPECT_EQ(GradientInAllTypes(
                {"scale",
                 {{"X", "T[B,4]"}},
                 {{"scale", 3.0}, {"bias", 1.0}, {"bias_after_scale", false}}}),
            "scale(X=dOut) {scale=3} -> X.grad : f16[B,4]\nX <- X.grad\n");
}

TEST(Cast, TakesTheDtypeFromItsAttribute) {
  EXPECT_EQ(Infer({"cast", {{"X", "f32[B,4]"}}, {{"to", DType::kF16}}}),
            "Out=f16[B,4]");
  EXPECT_EQ(Infer({"cast", {{"X", "i64[B]"}}, {{"to", "f32"}}}), "Out=f32[B]");
  EXPECT_THAT(Infer({"cast", {{"X", "f32[B,4]"}}}),
              HasSubstr("attribute to: expected dtype, found nothing"));
}

TEST(Cast, GradientIsACastBack) {
  EXPECT_EQ(Gradient({"cast", {{"X", "f32[B,4]"}}, {{"to", DType::kF16}}}),
            "cast(X=dOut) {to=f32} -> X.grad : f32[B,4]\nX <- X.grad\n");
  EXPECT_EQ(Gradient({"cast", {{"X", "f16[B,4]"}}, {{"to", DType::kF32}}}),
            "cast(X=dOut) {to=f16} -> X.grad : f16[B,4]\nX <- X.grad\n");
  EXPECT_EQ(Gradient({"cast", {{"X", "f32[B,4]"}}, {{"to", DType::kI64}}}), "");
}

TEST(Sum, AddsEqualDims) {
  EXPECT_EQ(Infer({"sum", {{"X", "f16[B,4] f16[B,4] f16[B,4]"}}}),
            "Out=f16[B,4]");
  Call wide = {"sum", {{"X", "f16[B,4]"}}};
  wide.bind = {{"TOut", "f32"}};
  EXPECT_EQ(Infer(wide), "Out=f32[B,4]");
  wide.in.clear();
  EXPECT_EQ(Infer(wide),
            "op (sum): slot X: expected one value or more, found nothing");
  EXPECT_EQ(Infer({"sum", {{"X", "f16[B,4] f16[B,5]"}}}),
            "op (sum): slot X[1]: expected the dims of X[0], f16[B,4], found "
            "f16[B,5]; elementwise_add broadcasts");
  EXPECT_THAT(Infer({"sum", {{"X", "f16[B,4] f32[B,4]"}}}),
              HasSubstr("slot X: expected f16 as slot X, found f32[B,4]"));
}

TEST(Sum, GradientIsHandedOn) {
  EXPECT_EQ(GradientInAllTypes({"sum", {{"X", "T[B] T[B]"}}}),
            "X.0 <- dOut\nX.1 <- dOut\n");
  Call wide = {"sum", {{"X", "f16[B]"}}};
  wide.bind = {{"Out", "f32"}};
  EXPECT_EQ(Gradient(wide),
            "cast(X=dOut) {to=f16} -> op.grad.Out : f16[B]\n"
            "X.0 <- op.grad.Out\n");
}

}  // namespace
}  // namespace ops
}  // namespace halftone
