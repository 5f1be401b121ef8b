#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;

TEST(Unary, KeepsDimsTypeAndLayout) {
  for (const char* op :
       {"relu",       "tanh",  "sigmoid", "exp",   "log",
        "square",     "sqrt",  "abs",     "scale", "assign",
        "reciprocal", "floor", "round",   "sign",  "sin",
        "cos",        "atan",  "erf",     "pow",   "fill_zeros_like"}) {
    EXPECT_EQ(Infer({op, {{"X", "bf16[B,S,3,3]@channels_last"}}}),
              "Out=bf16[B,S,3,3] @channels_last")
        << op;
  }
  EXPECT_EQ(Infer({"assign", {{"X", "i64[B]"}}}), "Out=i64[B]");
  EXPECT_THAT(Infer({"relu", {{"X", "i64[B]"}}}),
              HasSubstr("slot X: expected f32, f16, bf16, found i64[B]"));
}

TEST(Unary, Gradients) {
  const auto gradient = [](const char* op) {
    return GradientInAllTypes({op, {{"X", "T[B,4]"}}});
  };
  EXPECT_EQ(gradient("relu"),
            "relu_grad(Out=op.Out, OutGrad=dOut) -> X.grad : f16[B,4]\n"
            "X <- X.grad\n");
  EXPECT_EQ(gradient("tanh"),
            "tanh_grad(Out=op.Out, OutGrad=dOut) -> X.grad : f16[B,4]\n"
            "X <- X.grad\n");
  EXPECT_EQ(gradient("sigmoid"),
            "sigmoid_grad(Out=op.Out, OutGrad=dOut) -> X.grad : f16[B,4]\n"
            "X <- X.grad\n");
  EXPECT_EQ(gradient("abs"),
            "abs_grad(X=X, OutGrad=dOut) -> X.grad : f16[B,4]\n"
            "X <- X.grad\n");
  EXPECT_EQ(gradient("exp"),
            "elementwise_mul(X=dOut, Y=op.Out) -> X.grad : f16[B,4]\n"
            "X <- X.grad\n");
  EXPECT_EQ(gradient("log"),
            "elementwise_div(X=dOut, Y=X) -> X.grad : f16[B,4]\n"
            "X <- X.grad\n");
  EXPECT_EQ(gradient("square"),
            "elementwise_mul(X=dOut, Y=X) -> op.grad.Out : f16[B,4]\n"
            "scale(X=op.grad.Out) {scale=2} -> X.grad : f16[B,4]\n"
            "X <- X.grad\n");
  EXPECT_EQ(gradient("sqrt"),
            "elementwise_div(X=dOut, Y=op.Out) -> op.grad.Out : f16[B,4]\n"
            "scale(X=op.grad.Out) {scale=0.5} -> X.grad : f16[B,4]\n"
            "X <- X.grad\n");
  EXPECT_EQ(gradient("assign"),
            "assign(X=dOut) -> X.grad : f16[B,4]\nX <- X.grad\n");
}

TEST(Unary, GradientsOfSteps) {
  for (const char* op : {"floor", "ceil", "round", "sign", "fill_zeros_like"}) {
    EXPECT_EQ(GradientInAllTypes({op, {{"X", "T[B,4]"}}}),
              "fill_zeros_like(X=dOut) -> X.grad : f16[B,4]\n"
              "X <- X.grad\n")
        << op;
  }
}

TEST(Unary, GradientsByTheOtherFunction) {
  EXPECT_EQ(GradientInAllTypes({"sin", {{"X", "T[B]"}}}),
            "cos(X=X) -> op.grad.Out : f16[B]\n"
            "elementwise_mul(X=dOut, Y=op.grad.Out) -> X.grad : f16[B]\n"
            "X <- X.grad\n");
  EXPECT_EQ(GradientInAllTypes({"cos", {{"X", "T[B]"}}}),
            "sin(X=X) -> op.grad.Out : f16[B]\n"
            "elementwise_mul(X=dOut, Y=op.grad.Out) -> op.grad.1.Out : f16[B]\n"
            "scale(X=op.grad.1.Out) {scale=-1} -> X.grad : f16[B]\n"
            "X <- X.grad\n");
  EXPECT_EQ(GradientInAllTypes({"reciprocal", {{"X", "T[B]"}}}),
            "reciprocal_grad(Out=op.Out, OutGrad=dOut) -> X.grad : f16[B]\n"
            "X <- X.grad\n");
}

TEST(Pow, GradientIsTheNextLowerPower) {
  const auto gradient = [](double factor) {
    return GradientInAllTypes({"pow", {{"X", "T[B]"}}, {{"factor", factor}}});
  };
  EXPECT_EQ(gradient(3),
            "pow(X=X) {factor=2} -> op.grad.Out : f16[B]\n"
            "elementwise_mul(X=dOut, Y=op.grad.Out) -> op.grad.1.Out : f16[B]\n"
            "scale(X=op.grad.1.Out) {scale=3} -> X.grad : f16[B]\n"
            "X <- X.grad\n");
  EXPECT_EQ(gradient(2),
            "elementwise_mul(X=dOut, Y=X) -> op.grad.Out : f16[B]\n"
            "scale(X=op.grad.Out) {scale=2} -> X.grad : f16[B]\n"
            "X <- X.grad\n");
  EXPECT_EQ(gradient(1), "X <- dOut\n");
  EXPECT_EQ(gradient(0),
            "fill_zeros_like(X=dOut) -> X.grad : f16[B]\n"
            "X <- X.grad\n");
}

TEST(Round, SaysWhereHalvesGo) {
  EXPECT_EQ(Infer({"round", {{"X", "f32[B]"}}, {{"ties", "even"}}}),
            "Out=f32[B]");
  EXPECT_THAT(Infer({"round", {{"X", "f32[B]"}}, {{"ties", "up"}}}),
              HasSubstr("attribute ties: expected one of"));
}

TEST(UnaryGrad, OperandsHaveEqualDims) {
  EXPECT_EQ(
      Infer({"relu_grad", {{"Out", "f32[B,4]"}, {"OutGrad", "f32[B,4]"}}}),
      "XGrad=f32[B,4]");
  EXPECT_EQ(
      Infer({"abs_grad", {{"X", "f32[B,4]"}, {"OutGrad", "f32[B,5]"}}}),
      "op (abs_grad): slot OutGrad: expected dims [B,4] (those of X), found "
      "f32[B,5]; change its dims or those of the slots named");
}

}  // namespace
}  // namespace ops
}  // namespace halftone
