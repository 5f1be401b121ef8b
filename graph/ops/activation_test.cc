#include <limits>

#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;

TEST(Activation, GradientsHaveTheSettings) {
  EXPECT_EQ(
      GradientInAllTypes({"leaky_relu", {{"X", "T[B]"}}, {{"alpha", 0.25}}}),
      "leaky_relu_grad(X=X, OutGrad=dOut) {alpha=0.25} -> X.grad : "
      "f16[B]\nX <- X.grad\n");
  EXPECT_EQ(GradientInAllTypes({"hard_sigmoid",
                                {{"X", "T[B]"}},
                                {{"slope", 0.25}, {"offset", 0.75}}}),
            "hard_sigmoid_grad(Out=op.Out, OutGrad=dOut) {slope=0.25 "
            "offset=0.75} -> X.grad : f16[B]\nX <- X.grad\n");
  EXPECT_EQ(GradientInAllTypes({"relu6", {{"X", "T[B]"}}}),
            "relu6_grad(Out=op.Out, OutGrad=dOut) -> X.grad : f16[B]\n"
            "X <- X.grad\n");
  EXPECT_EQ(GradientInAllTypes({"silu", {{"X", "T[B]"}}}),
            "silu_grad(X=X, OutGrad=dOut) -> X.grad : f16[B]\n"
            "X <- X.grad\n");
}

TEST(ReluBits, AByteIsOfEightChannels) {
  EXPECT_EQ(Infer({"relu_bits", {{"Out", "f16[B,16,5,3]"}}}),
            "Bits=u8[B,2,5,3]");
  for (const char* image : {"f16[B,12]", "f16[16]"}) {
    EXPECT_THAT(Infer({"relu_bits", {{"Out", image}}}),
                HasSubstr("slot Out: expected [N, C, ...] with a C that 8 "
                          "divides"));
  }
  const auto infer = [](const char* bits, const char* grad) {
    return Infer({"relu_grad_bits", {{"Bits", bits}, {"OutGrad", grad}}});
  };
  EXPECT_EQ(infer("u8[B,2,5]", "f16[B,16,5]"), "XGrad=f16[B,16,5]");
  EXPECT_THAT(infer("u8[B,16,5]", "f16[B,16,5]"),
              HasSubstr("slot Bits: expected dims [B,2,5]"));
  EXPECT_THAT(infer("u8[B,2,5]", "f16[B,20,5]"), HasSubstr("slot OutGrad"));
}

TEST(Activation, SettingsAreChecked) {
  const auto infer = [](const char* op, const char* attr, double value) {
    return Infer({op, {{"X", "f32[B,4]"}}, {{attr, value}}});
  };
  EXPECT_EQ(infer("elu", "alpha", -1), "Out=f32[B,4]");
  const double inf = std::numeric_limits<double>::infinity();
  for (const char* op : {"leaky_relu", "elu"}) {
    EXPECT_THAT(infer(op, "alpha", inf), HasSubstr("attribute alpha")) << op;
  }
  EXPECT_THAT(infer("swish", "beta", 1e39), HasSubstr("attribute beta"));
  EXPECT_THAT(infer("mish", "threshold", inf), HasSubstr("threshold"));
  EXPECT_THAT(infer("relu6", "threshold", -1), HasSubstr("threshold"));
  EXPECT_THAT(infer("softplus", "beta", 0),
              HasSubstr("attribute beta: expected a number above 0, found 0"));
  EXPECT_THAT(infer("hard_swish", "scale", 0),
              HasSubstr("attribute scale: expected a divisor other than 0"));
  EXPECT_THAT(infer("hard_sigmoid", "slope", inf), HasSubstr("slope"));
  EXPECT_THAT(infer("brelu", "t_min", 25),
              HasSubstr("attribute t_min: expected at most t_max, 24"));
}

TEST(Gelu, SaysWhichOne) {
  EXPECT_EQ(Infer({"gelu", {{"X", "f16[B,4]"}}}), "Out=f16[B,4]");
  EXPECT_EQ(Infer({"gelu", {{"X", "f32[B,4]"}}, {{"approximate", "tanh"}}}),
            "Out=f32[B,4]");
  EXPECT_THAT(Infer({"gelu", {{"X", "f32[4]"}}, {{"approximate", "erf"}}}),
              HasSubstr("attribute approximate: expected one of"));
  EXPECT_EQ(Gradient({"gelu", {{"X", "f32[B]"}}, {{"approximate", "tanh"}}}),
            "gelu_grad(X=X, OutGrad=dOut) {approximate=tanh} -> "
            "X.grad : f32[B]\nX <- X.grad\n");
}

}  // namespace
}  // namespace ops
}  // namespace halftone
