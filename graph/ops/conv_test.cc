#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;

Call Conv(std::string input, std::string filter,
          std::vector<std::pair<std::string, AttrValue>> attrs = {}) {
  return {"conv2d", {{"Input", input}, {"Filter", filter}}, attrs};
}

TEST(Conv, OutputDims) {
  EXPECT_EQ(Infer(Conv("f32[B,3,224,224]", "f32[64,3,7,7]",
                       {{"strides", Ints{2, 2}}, {"paddings", Ints{3, 3}}})),
            "Output=f32[B,64,112,112]");
  EXPECT_EQ(Infer(Conv("f16[B,16,14,14]", "f16[32,16,5,5]",
                       {{"paddings", Ints{2, 2}}})),
            "Output=f16[B,32,14,14]");
  EXPECT_EQ(Infer(Conv("f32[2,1,8,10]", "f32[4,1,3,3]",
                       {{"paddings", Ints{0, 1, 2, 3}}})),
            "Output=f32[2,4,7,13]");
  EXPECT_EQ(
      Infer(Conv("f32[2,1,9,9]", "f32[4,1,3,3]", {{"dilations", Ints{2, 3}}})),
      "Output=f32[2,4,5,3]");
  EXPECT_EQ(Infer(Conv("f32[0,4,9,9]", "f32[6,2,1,1]", {{"groups", 2}})),
            "Output=f32[0,6,9,9]");
}

TEST(Conv, BiasAndLayout) {
  Call call = Conv("f32[B,3,8,8]", "f32[4,3,1,1]");
  call.in.emplace_back("Bias", "f32[4]");
  EXPECT_EQ(Infer(call), "Output=f32[B,4,8,8]");
  EXPECT_EQ(Infer(Conv("f16[B,8,8,8]@channels_last", "f16[4,8,1,1]")),
            "Output=f16[B,4,8,8] @channels_last");
}

TEST(Conv, SymbolicSizesSurviveWhereTheWindowKeepsThem) {
  EXPECT_EQ(
      Infer(Conv("f32[B,1,S,S]", "f32[4,1,3,3]", {{"paddings", Ints{1, 1}}})),
      "Output=f32[B,4,S,S]");
  EXPECT_EQ(Infer(Conv("f32[B,1,S,8]", "f32[4,1,3,3]")),
            "op (conv2d): slot Input: expected constant H and W, found "
            "f32[B,1,S,8]; symbolic ones need strides of 1 and paddings that "
            "keep the size");
}

TEST(Conv, Errors) {
  EXPECT_EQ(Infer(Conv("f32[B,784]", "f32[4,1,3,3]")),
            "op (conv2d): slot Input: expected [N, C, H, W] (rank 4), found "
            "f32[B,784]; reshape or flatten it first");
  EXPECT_EQ(Infer(Conv("f32[B,3,8,8]", "f32[4,1,3,3]")),
            "op (conv2d): slot Filter: expected [O, C / groups, kh, kw] with "
            "C / groups = [3] / 1, found f32[4,1,3,3]; Input is f32[B,3,8,8]");
  EXPECT_EQ(Infer(Conv("f32[B,4,8,8]", "f32[3,2,3,3]", {{"groups", 2}})),
            "op (conv2d): slot Filter: expected O to be a multiple of groups "
            "= 2, found f32[3,2,3,3]; change groups or the filter");
  EXPECT_EQ(Infer(Conv("f32[B,1,4,8]", "f32[4,1,5,5]")),
            "op (conv2d): slot Input: expected H and W that with their "
            "paddings hold the filter, found f32[B,1,4,8]; enlarge paddings "
            "or the image");
  EXPECT_EQ(Infer(Conv("f32[B,1,8,8]", "f32[4,1,S,3]")),
            "op (conv2d): slot Filter: expected constant kh and kw from 1 up, "
            "found f32[4,1,S,3]; a filter's size cannot vary");
  Call bias = Conv("f32[B,3,8,8]", "f32[4,3,1,1]");
  bias.in.emplace_back("Bias", "f32[3]");
  EXPECT_EQ(Infer(bias),
            "op (conv2d): slot Bias: expected dims [4] (one per output "
            "channel of Filter), found f32[3]; change its dims or those of "
            "the slots named");
}

TEST(Conv, AttributeErrors) {
  const auto with = [](std::string name, AttrValue value) {
    return Infer(Conv("f32[B,1,8,8]", "f32[4,1,3,3]", {{name, value}}));
  };
  EXPECT_EQ(with("strides", Ints{0, 1}),
            "op (conv2d): attribute strides: expected 2 integers (height, "
            "width) from 1 up, found [0, 1]");
  EXPECT_EQ(with("dilations", Ints{1}),
            "op (conv2d): attribute dilations: expected 2 integers (height, "
            "width) from 1 up, found [1]");
  EXPECT_EQ(with("paddings", Ints{1, 2, 3}),
            "op (conv2d): attribute paddings: expected 2 (height, width) or "
            "4 (top, bottom, left, right) integers from 0 up, found "
            "[1, 2, 3]");
  EXPECT_THAT(with("paddings", Ints{INT64_MAX, 0}), HasSubstr("paddings"));
  EXPECT_THAT(with("strides", Ints{INT64_MAX, 1}), HasSubstr("strides"));
  EXPECT_EQ(with("groups", 0),
            "op (conv2d): attribute groups: expected 1 or more, found 0");
  EXPECT_THAT(with("groups", INT64_MAX), HasSubstr("slot Filter"));
}

TEST(DepthwiseConv, GroupsAreTheChannels) {
  Call call = Conv("f32[B,8,6,6]", "f32[16,1,3,3]", {{"groups", 8}});
  call.op = "depthwise_conv2d";
  EXPECT_EQ(Infer(call), "Output=f32[B,16,4,4]");
  call.attrs.clear();
  EXPECT_EQ(Infer(call),
            "op (depthwise_conv2d): attribute groups: expected the channels "
            "of Input, f32[B,8,6,6], found 1; or use conv2d");
}

TEST(Conv, Gradient) {
  Call call = Conv("T[B,3,9,8]", "T[4,3,3,3]", {{"strides", Ints{2, 2}}});
  call.in.emplace_back("Bias", "T[4]");
  EXPECT_EQ(
      GradientInAllTypes(call),
      "reduce_sum(X=dOutput) {dim=[0,2,3]} -> Bias.grad : f16[4]\n"
      "conv2d_grad_input(OutputGrad=dOutput, Filter=Filter) {strides=[2,2] "
      "input_hw=[9,8]} -> Input.grad : f16[B,3,9,8]\n"
      "conv2d_grad_filter(Input=Input, OutputGrad=dOutput) {strides=[2,2] "
      "filter_hw=[3,3]} -> Filter.grad : f16[4,3,3,3]\n"
      "Input <- Input.grad\nFilter <- Filter.grad\nBias <- Bias.grad\n");
  call.wanted = {"Filter"};
  EXPECT_EQ(
      Gradient(call),
      "conv2d_grad_filter(Input=Input, OutputGrad=dOutput) {strides=[2,2] "
      "filter_hw=[3,3]} -> Filter.grad : f16[4,3,3,3]\n"
      "Filter <- Filter.grad\n");
}

TEST(Conv, GradientOfSymbolicSizesAndGroups) {
  Call call = Conv("T[B,4,S,6]", "T[8,1,3,3]",
                   {{"paddings", Ints{1, 1}}, {"groups", 4}});
  call.op = "depthwise_conv2d";
  call.wanted = {"Input"};
  EXPECT_EQ(Gradient(call),
            "conv2d_grad_input(OutputGrad=dOutput, Filter=Filter) "
            "{paddings=[1,1] groups=4 input_hw=[-1,6]} -> Input.grad : "
            "f16[B,4,S,6]\nInput <- Input.grad\n");
}

TEST(Conv, GradientsFollowTheLayout) {
  Call call = Conv("T[B,8,8,8]@channels_last", "T[4,8,1,1]@channels_last");
  EXPECT_THAT(Gradient(call),
              HasSubstr("Input.grad : f16[B,8,8,8] @channels_last"));
  EXPECT_THAT(Gradient(call),
              HasSubstr("Filter.grad : f16[4,8,1,1] @channels_last"));
}

TEST(ConvGradInput, ChecksItsSizes) {
  const auto infer = [](Ints input_hw) {
    return Infer({"conv2d_grad_input",
                  {{"OutputGrad", "f32[B,4,4,4]"}, {"Filter", "f32[4,3,3,3]"}},
                  {{"input_hw", input_hw}, {"strides", Ints{2, 2}}}});
  };
  EXPECT_EQ(infer({9, 10}), "InputGrad=f32[B,3,9,10]");
  EXPECT_EQ(infer({11, 9}),
            "op (conv2d_grad_input): slot OutputGrad: expected the dims of "
            "the convolution of input_hw with these attributes, found "
            "f32[B,4,4,4]");
  EXPECT_THAT(infer({9}), HasSubstr("attribute input_hw: expected 2"));
}

TEST(ConvGradFilter, HasATypeOfItsOwn) {
  Call call = {"conv2d_grad_filter",
               {{"Input", "f16[B,6,9,9]"}, {"OutputGrad", "f16[B,4,7,7]"}},
               {{"filter_hw", Ints{3, 3}}, {"groups", 2}}};
  EXPECT_EQ(Infer(call), "FilterGrad=f16[4,3,3,3]");
  call.bind = {{"TW", "f32"}};
  EXPECT_EQ(Infer(call), "FilterGrad=f32[4,3,3,3]");
  call.attrs[1] = {"groups", 4};
  EXPECT_THAT(Infer(call), HasSubstr("slot Input: expected C to be a multiple "
                                     "of groups = 4, found f16[B,6,9,9]"));
}

}  // namespace
}  // namespace ops
}  // namespace halftone
