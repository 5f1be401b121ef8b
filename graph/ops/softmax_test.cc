#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

TEST(Softmax, KeepsDims) {
  EXPECT_EQ(Infer({"softmax", {{"X", "f32[B,10]"}}}), "Out=f32[B,10]");
  Call call = {"softmax", {{"X", "f16[B,S,10]"}}, {{"axis", 1}}};
  call.bind = {{"TOut", "f32"}};
  EXPECT_EQ(Infer(call), "Out=f32[B,S,10]");
}

TEST(Softmax, Errors) {
  EXPECT_EQ(Infer({"softmax", {{"X", "f32[B,10]"}}, {{"axis", 2}}}),
            "op (softmax): attribute axis: expected an axis from -2 to 1, "
            "found 2");
  EXPECT_EQ(Infer({"softmax", {{"X", "f32[]"}}}),
            "op (softmax): attribute axis: expected an operand of rank 1 or "
            "more, found -1; a scalar has no axis");
  EXPECT_EQ(
      Infer({"softmax_grad", {{"Out", "f32[B,4]"}, {"OutGrad", "f32[4]"}}}),
      "op (softmax_grad): slot OutGrad: expected dims [B,4] (those of Out), "
      "found f32[4]; change its dims or those of the slots named");
}

TEST(Softmax, Gradient) {
  EXPECT_EQ(GradientInAllTypes({"softmax", {{"X", "T[B,10]"}}}),
            "softmax_grad(Out=op.Out, OutGrad=dOut) -> X.grad : f16[B,10]\n"
            "X <- X.grad\n");
  Call call = {"softmax", {{"X", "f16[B,S,10]"}}, {{"axis", 1}}};
  call.bind = {{"TOut", "f32"}};
  EXPECT_EQ(Gradient(call),
            "softmax_grad(Out=op.Out, OutGrad=dOut) {axis=1} -> X.grad : "
            "f16[B,S,10]\nX <- X.grad\n");
}

}  // namespace
}  // namespace ops
}  // namespace halftone
