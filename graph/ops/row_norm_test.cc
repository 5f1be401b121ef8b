#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;

Call Norm(const std::string& op, const std::string& x, const std::string& c,
          std::vector<std::pair<std::string, AttrValue>> attrs = {}) {
  Call call = {op, {{"X", x}, {"Scale", c}}, attrs};
  if (op != "rms_norm") call.in.push_back({"Bias", c});
  return call;
}

TEST(RowNorm, Outputs) {
  EXPECT_EQ(Infer(Norm("layer_norm", "f16[B,S,8]", "f32[8]",
                       {{"begin_norm_axis", 2}})),
            "Y=f16[B,S,8]; Mean=f32[B*S]; Variance=f32[B*S]");
  EXPECT_EQ(Infer(Norm("layer_norm", "f32[B,4,8]", "f32[32]")),
            "Y=f32[B,4,8]; Mean=f32[B]; Variance=f32[B]");
  EXPECT_EQ(Infer({"layer_norm", {{"X", "f32[4,8]"}}, {{"epsilon", 0.1}}}),
            "Y=f32[4,8]; Mean=f32[4]; Variance=f32[4]");
  EXPECT_EQ(Infer(Norm("rms_norm", "bf16[B,S,8]", "f32[8]")),
            "Y=bf16[B,S,8]; MeanSquare=f32[B*S]");
  EXPECT_EQ(
      Infer(Norm("group_norm", "f16[B,8,S,S]", "f32[8]", {{"groups", 4}})),
      "Y=f16[B,8,S,S]; Mean=f32[B,4]; Variance=f32[B,4]");
  EXPECT_EQ(Infer(Norm("instance_norm", "f32[B,8,4,4,4]", "f32[8]")),
            "Y=f32[B,8,4,4,4]; SavedMean=f32[B*8]; SavedVariance=f32[B*8]");
  Call call = Norm("layer_norm", "f16[B,8]", "f32[8]");
  call.bind = {{"TOut", "f32"}};
  EXPECT_THAT(Infer(call), HasSubstr("Y=f32[B,8];"));
}

TEST(RowNorm, Errors) {
  EXPECT_EQ(Infer(Norm("layer_norm", "f32[B,4,8]", "f32[8]")),
            "op (layer_norm): slot Scale: expected dims [32] ([the dims of X "
            "from begin_norm_axis on, multiplied] of X, f32[B,4,8]), found "
            "f32[8]; change its dims or those of the slots named");
  EXPECT_THAT(
      Infer(Norm("layer_norm", "f32[B,8]", "f32[8]", {{"begin_norm_axis", 2}})),
      HasSubstr("attribute begin_norm_axis: expected an axis from -2 "
                "to 1, found 2"));
  EXPECT_THAT(Infer(Norm("layer_norm", "f16[B,8]", "f16[8]")),
              HasSubstr("slot Scale: expected f32, found f16[8]; cast it"));
  EXPECT_EQ(Infer(Norm("group_norm", "f32[B,8,S]", "f32[8]", {{"groups", 3}})),
            "op (group_norm): attribute groups: expected a divisor of [8], the "
            "channels of X, f32[B,8,S], found 3");
  EXPECT_THAT(Infer(Norm("group_norm", "f32[B,8]", "f32[8]", {{"groups", 0}})),
              HasSubstr("attribute groups: expected a divisor"));
  EXPECT_THAT(Infer(Norm("instance_norm", "f32[8]", "f32[8]")),
              HasSubstr("slot X: expected [N, C, ...] (rank at least 2)"));
  EXPECT_THAT(
      Infer(Norm("rms_norm", "f32[B,8]", "f32[8]", {{"epsilon", -1.0}})),
      HasSubstr("attribute epsilon: expected a finite number >= 0"));
}

TEST(RowNorm, Gradient) {
  Call call = Norm("layer_norm", "T[B,S,8]", "f32[8]",
                   {{"begin_norm_axis", 2}, {"epsilon", 0.001}});
  EXPECT_EQ(GradientInAllTypes(call),
            "layer_norm_grad(X=X, YGrad=dY, Scale=Scale, Mean=op.Mean, "
            "Variance=op.Variance) {epsilon=0.001 begin_norm_axis=2} -> X.grad "
            ": f16[B,S,8], Scale.grad : f32[8], Bias.grad : f32[8]\n"
            "X <- X.grad\nScale <- Scale.grad\nBias <- Bias.grad\n");
  call.wanted = {"X", "Bias"};
  EXPECT_THAT(Gradient(call),
              HasSubstr("X.grad : f16[B,S,8], Bias.grad : f32[8]\n"));
  // Its dtype is X's, whatever Y's is.
  call.wanted = {"X"};
  call.bind = {{"TOut", "f32"}};
  EXPECT_THAT(Gradient(call), HasSubstr("-> X.grad : f16[B,S,8]\n"));
  EXPECT_THAT(GradientInAllTypes(Norm("rms_norm", "T[B,8]", "f32[8]")),
              HasSubstr("MeanSquare=op.MeanSquare) -> X.grad"));
  EXPECT_THAT(GradientInAllTypes({"instance_norm", {{"X", "T[B,8,4]"}}}),
              HasSubstr("SavedVariance=op.SavedVariance) -> X.grad"));
  EXPECT_THAT(GradientInAllTypes({"group_norm",
                                  {{"X", "T[B,8,4]"}, {"Bias", "f32[8]"}},
                                  {{"groups", 2}}}),
              HasSubstr("{groups=2} -> X.grad : f16[B,8,4], Bias.grad"));
}

}  // namespace
}  // namespace ops
}  // namespace halftone
