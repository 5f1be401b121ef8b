#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;

TEST(PointwiseLoss, Outputs) {
  EXPECT_EQ(Infer({"huber_loss", {{"X", "f32[B,4]"}, {"Y", "f32[B,4]"}}}),
            "Out=f32[B,4]");
  EXPECT_EQ(Infer({"kldiv_loss", {{"X", "f16[B,4]"}, {"Target", "f16[B,4]"}}}),
            "Loss=f16[B,4]");
  EXPECT_EQ(Infer({"sigmoid_cross_entropy_with_logits",
                   {{"X", "f32[B,4]"}, {"Label", "f32[B,4]"}},
                   {{"normalize", true}}}),
            "Out=f32[B,4]");
  EXPECT_EQ(Infer({"nll_loss", {{"X", "f16[B,4,S]"}, {"Label", "i64[B,S]"}}}),
            "Out=f32[B,S]");
  EXPECT_EQ(Infer({"label_smooth", {{"X", "f32[B,4]"}}, {{"epsilon", 0.1}}}),
            "Out=f32[B,4]");
}

TEST(PointwiseLoss, Errors) {
  EXPECT_EQ(Infer({"bce_loss", {{"X", "f32[B,4]"}, {"Label", "f32[B]"}}}),
            "op (bce_loss): slot Label: expected dims [B,4] (those of X), "
            "found f32[B]; change its dims or those of the slots named");
  EXPECT_THAT(Infer({"kldiv_loss",
                     {{"X", "f32[B,4]"}, {"Target", "f32[B,4]"}},
                     {{"reduction", "mean"}}}),
              HasSubstr("attribute reduction: expected none, found \"mean\""));
  EXPECT_THAT(
      Infer({"nll_loss",
             {{"X", "f32[B,4]"}, {"Label", "i64[B]"}, {"Weight", "f32[3]"}}}),
      HasSubstr("slot Weight: expected dims [4] (C of X)"));
  EXPECT_THAT(Infer({"label_smooth", {{"X", "f32[4,B]"}}}),
              HasSubstr("slot X: expected [..., classes]"));
}

TEST(PointwiseLoss, Gradients) {
  // Of both operands where the loss is of their difference.
  EXPECT_EQ(
      GradientInAllTypes(
          {"huber_loss", {{"X", "T[B]"}, {"Y", "T[B]"}}, {{"delta", 0.5}}}),
      "huber_loss_by_x(X=X, Y=Y) {delta=0.5} -> op.grad.Out : f16[B]\n"
      "elementwise_mul(X=dOut, Y=op.grad.Out) -> op.grad.1.Out : f16[B]\n"
      "scale(X=op.grad.1.Out) {scale=-1} -> Y.grad : f16[B]\n"
      "X <- op.grad.1.Out\nY <- Y.grad\n");
  Call call = {"kldiv_loss", {{"X", "T[B]"}, {"Target", "T[B]"}}};
  call.wanted = {"X"};
  EXPECT_EQ(GradientInAllTypes(call),
            "kldiv_loss_by_x(X=X, Target=Target) -> op.grad.Loss : f16[B]\n"
            "elementwise_mul(X=dLoss, Y=op.grad.Loss) -> X.grad : f16[B]\n"
            "X <- X.grad\n");
  EXPECT_THAT(GradientInAllTypes(
                  {"label_smooth", {{"X", "T[B,4]"}}, {{"epsilon", 0.25}}}),
              HasSubstr("scale(X=dOut) {scale=0.75} -> X.grad"));
  EXPECT_THAT(
      GradientInAllTypes({"nll_loss", {{"X", "T[B,4]"}, {"Label", "i64[B]"}}}),
      HasSubstr("nll_loss_grad(X=X, Label=Label, OutGrad=dOut) -> X.grad : "
                "f16[B,4]"));
}

}  // namespace
}  // namespace ops
}  // namespace halftone
