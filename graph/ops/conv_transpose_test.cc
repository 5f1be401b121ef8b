#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;

using Attrs = std::vector<std::pair<std::string, AttrValue>>;

Call Transpose(std::string input, std::string filter, Attrs attrs = {}) {
  return {"conv2d_transpose", {{"Input", input}, {"Filter", filter}}, attrs};
}

TEST(ConvTranspose, OutputDims) {
  EXPECT_EQ(Infer(Transpose("f32[B,64,28,28]", "f32[64,32,2,2]",
                            {{"strides", Ints{2, 2}}})),
            "Output=f32[B,32,56,56]");
  EXPECT_EQ(Infer(Transpose("f16[B,8,7,7]", "f16[8,4,3,3]",
                            {{"strides", Ints{2, 2}},
                             {"paddings", Ints{1, 1}},
                             {"output_padding", Ints{1, 0}}})),
            "Output=f16[B,4,14,13]");
  EXPECT_EQ(Infer(Transpose("f32[2,4,5,5]", "f32[4,3,3,3]",
                            {{"dilations", Ints{2, 1}}, {"groups", 2}})),
            "Output=f32[2,6,9,7]");
  EXPECT_EQ(Infer(Transpose(
                "f32[2,4,5,5]", "f32[4,3,3,3]",
                {{"strides", Ints{3, 2}}, {"output_size", Ints{17, 11}}})),
            "Output=f32[2,3,17,11]");
  EXPECT_EQ(Infer({"conv1d_transpose",
                   {{"Input", "f32[B,4,5]"}, {"Filter", "f32[4,2,4]"}},
                   {{"strides", Ints{2}}, {"paddings", Ints{1}}}}),
            "Output=f32[B,2,10]");
  EXPECT_EQ(Infer({"conv3d_transpose",
                   {{"Input", "f32[B,4,5,6,7]"}, {"Filter", "f32[4,2,2,2,2]"}},
                   {{"strides", Ints{2, 2, 2}}}}),
            "Output=f32[B,2,10,12,14]");
  EXPECT_EQ(Infer(Transpose("f32[B,2,S,S]", "f32[2,3,3,3]",
                            {{"paddings", Ints{1, 1}}})),
            "Output=f32[B,3,S,S]");
}

TEST(ConvTranspose, Errors) {
  const auto with = [](std::string name, AttrValue value) {
    return Infer(Transpose("f32[B,4,5,5]", "f32[4,3,3,3]",
                           {{"strides", Ints{3, 2}}, {name, value}}));
  };
  EXPECT_EQ(with("output_size", Ints{18, 11}),
            "op (conv2d_transpose): attribute output_size: expected 15 to 17 "
            "along dim 2, found [18, 11]");
  EXPECT_EQ(with("output_padding", Ints{0, 2}),
            "op (conv2d_transpose): attribute output_padding: expected less "
            "than strides along dim 3, found [0, 2]");
  EXPECT_THAT(with("output_padding", Ints{1}),
              HasSubstr("expected 2 integers (height, width) from 0 up"));
  EXPECT_THAT(with("paddings", Ints{9, 9}),
              HasSubstr("slot Input: expected H and W that paddings leave a "
                        "result"));
  EXPECT_THAT(with("groups", 3),
              HasSubstr("slot Input: expected C to be a multiple of groups"));
  EXPECT_EQ(Infer(Transpose("f32[B,3,5,5]", "f32[4,3,3,3]")),
            "op (conv2d_transpose): slot Filter: expected [C, O / groups, kh, "
            "kw] with C = [3], found f32[4,3,3,3]; Input is f32[B,3,5,5]");
  Call depthwise = Transpose("f32[B,4,5,5]", "f32[4,1,3,3]");
  depthwise.op = "depthwise_conv2d_transpose";
  EXPECT_EQ(Infer(depthwise),
            "op (depthwise_conv2d_transpose): attribute groups: expected the "
            "channels of Input, f32[B,4,5,5], found 1; or use "
            "conv2d_transpose");
}

TEST(ConvTranspose, GradientsAreConvolutions) {
  Call call = Transpose("T[B,4,5,5]", "T[4,3,3,3]",
                        {{"strides", Ints{2, 2}},
                         {"paddings", Ints{1, 1}},
                         {"output_padding", Ints{1, 1}}});
  call.in.emplace_back("Bias", "T[3]");
  EXPECT_EQ(
      GradientInAllTypes(call),
      "reduce_sum(X=dOutput) {dim=[0,2,3]} -> Bias.grad : f16[3]\n"
      "conv2d(Input=dOutput, Filter=Filter) {strides=[2,2] paddings=[1,1]} -> "
      "Input.grad : f16[B,4,5,5]\n"
      "conv2d_grad_filter(Input=dOutput, OutputGrad=Input) {strides=[2,2] "
      "paddings=[1,1] filter_hw=[3,3]} -> Filter.grad : f16[4,3,3,3]\n"
      "Input <- Input.grad\nFilter <- Filter.grad\nBias <- Bias.grad\n");
}

}  // namespace
}  // namespace ops
}  // namespace halftone
