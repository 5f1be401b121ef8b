#include "graph/ops/op_testing.h"
#include "graph/schema/op_registry.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;
using Attrs = std::vector<std::pair<std::string, AttrValue>>;

Call Pool(std::string x, Attrs attrs = {}) {
  return {"pool2d", {{"X", x}}, attrs};
}

TEST(Pool, OutputDims) {
  EXPECT_EQ(Infer(Pool("f16[B,16,28,28]", {{"strides", Ints{2, 2}}})),
            "Out=f16[B,16,14,14]");
  EXPECT_EQ(Infer(Pool("f32[B,64,112,112]", {{"ksize", Ints{3, 3}},
                                             {"strides", Ints{2, 2}},
                                             {"paddings", Ints{1, 1}}})),
            "Out=f32[B,64,56,56]");
  EXPECT_EQ(Infer(Pool("f32[B,64,S,S]",
                       {{"global_pooling", true}, {"pooling_type", "avg"}})),
            "Out=f32[B,64,1,1]");
  EXPECT_EQ(Infer(Pool("f32[B,64,S,S]",
                       {{"ksize", Ints{3, 3}}, {"paddings", Ints{1, 1}}})),
            "Out=f32[B,64,S,S]");
  EXPECT_EQ(Infer(Pool("f32[0,8,4,4]@channels_last")),
            "Out=f32[0,8,3,3] @channels_last");
}

// The last window starts inside the image or the padding before it.
TEST(Pool, CeilMode) {
  const auto infer = [](int64_t size, int64_t kernel, int64_t stride,
                        int64_t padding) {
    const std::string s = std::to_string(size);
    return Infer(Pool("f32[1,1," + s + "," + s + "]",
                      {{"ksize", Ints{kernel, kernel}},
                       {"strides", Ints{stride, stride}},
                       {"paddings", Ints{padding, padding}},
                       {"ceil_mode", true}}));
  };
  EXPECT_EQ(infer(8, 3, 2, 0), "Out=f32[1,1,4,4]");
  EXPECT_EQ(infer(7, 3, 2, 0), "Out=f32[1,1,3,3]");
  EXPECT_EQ(infer(5, 2, 3, 1), "Out=f32[1,1,2,2]");  // a third starts at 5
  EXPECT_EQ(infer(6, 2, 3, 1), "Out=f32[1,1,3,3]");  // it starts at 5
}

// Paddle's windows count wherever they start.
TEST(Pool, AllCeilWindows) {
  const auto infer = [](int64_t size, int64_t kernel, int64_t stride,
                        int64_t padding) {
    const std::string s = std::to_string(size);
    return Infer(Pool("f32[1,1," + s + "," + s + "]",
                      {{"ksize", Ints{kernel, kernel}},
                       {"strides", Ints{stride, stride}},
                       {"paddings", Ints{padding, padding}},
                       {"ceil_mode", true},
                       {"ceil_windows", "all"}}));
  };
  EXPECT_EQ(infer(5, 2, 2, 1), "Out=f32[1,1,4,4]");
  EXPECT_EQ(infer(5, 2, 3, 1), "Out=f32[1,1,3,3]");
  EXPECT_EQ(infer(6, 2, 3, 0), "Out=f32[1,1,3,3]");
  EXPECT_EQ(infer(7, 3, 2, 0), "Out=f32[1,1,3,3]");
  EXPECT_THAT(Infer(Pool("f32[1,1,4,4]", {{"ceil_windows", "al"}})),
              HasSubstr("nearest: all"));
}

TEST(Pool, Adaptive) {
  const Attrs attrs = {{"adaptive", true},
                       {"ksize", Ints{3, 5}},
                       {"strides", Ints{7, 7}},
                       {"paddings", Ints{9, 9}}};
  EXPECT_EQ(Infer(Pool("f32[B,2,5,4]", attrs)), "Out=f32[B,2,3,5]");
  EXPECT_EQ(Infer(Pool("f32[B,2,S,4]", attrs)), "Out=f32[B,2,3,5]");
  EXPECT_THAT(Infer(Pool("f32[B,2,5,4]",
                         {{"adaptive", true}, {"global_pooling", true}})),
              HasSubstr("attribute adaptive: expected false beside "
                        "global_pooling"));
}

TEST(Pool, Errors) {
  EXPECT_EQ(Infer(Pool("f32[B,784]")),
            "op (pool2d): slot X: expected [N, C, H, W] (rank 4), found "
            "f32[B,784]; reshape or flatten it first");
  EXPECT_EQ(Infer(Pool("f32[B,8,4,4]", {{"pooling_type", "max2"}})),
            "op (pool2d): attribute pooling_type: expected one of \"max\", "
            "\"avg\", found \"max2\"; nearest: max");
  EXPECT_EQ(Infer(Pool("f32[B,8,1,4]")),
            "op (pool2d): slot X: expected H and W that with their paddings "
            "hold a window of ksize, found f32[B,8,1,4]; use a smaller ksize, "
            "or global_pooling");
  EXPECT_EQ(Infer(Pool("f32[B,8,S,4]")),
            "op (pool2d): slot X: expected constant H and W, found "
            "f32[B,8,S,4]; symbolic ones need global_pooling, or strides of 1 "
            "and paddings that keep the size");
  EXPECT_EQ(Infer(Pool("f32[B,8,4,4]", {{"paddings", Ints{2, 0}}})),
            "op (pool2d): attribute paddings: expected less than ksize, found "
            "[2, 0]; a window of padding alone has no result");
  EXPECT_THAT(Infer(Pool("f32[B,8,4,4]", {{"ksize", Ints{0, 2}}})),
              HasSubstr("attribute ksize: expected 2 integers"));
}

TEST(Pool, Gradient) {
  EXPECT_EQ(GradientInAllTypes(Pool("T[B,8,4,4]", {{"pooling_type", "avg"},
                                                   {"strides", Ints{2, 2}},
                                                   {"exclusive", false}})),
            "pool2d_grad(X=X, Out=op.Out, OutGrad=dOut) {pooling_type=avg "
            "strides=[2,2] exclusive=false} -> X.grad : f16[B,8,4,4]\n"
            "X <- X.grad\n");
  EXPECT_THAT(Infer({"pool2d_grad",
                     {{"X", "f32[B,8,4,4]"},
                      {"Out", "f32[B,8,2,2]"},
                      {"OutGrad", "f32[B,8,3,3]"}}}),
              HasSubstr("slot Out: expected dims [B,8,3,3] (those of X, "
                        "pooled), found f32[B,8,2,2]"));
}

Call Argmax(std::string x, Attrs attrs) {
  Call call = Pool(std::move(x), std::move(attrs));
  call.lists = {{"Argmax", 1}};
  return call;
}

TEST(Pool, Argmax) {
  EXPECT_EQ(Infer(Argmax("f16[B,64,112,112]@channels_last",
                         {{"ksize", Ints{3, 3}},
                          {"strides", Ints{2, 2}},
                          {"paddings", Ints{1, 1}}})),
            "Out=f16[B,64,56,56] @channels_last; "
            "Argmax=u8[B,64,56,56] @channels_last");
  EXPECT_THAT(Infer(Argmax("f32[B,2,20,20]", {{"ksize", Ints{16, 16}}})),
              HasSubstr("attribute ksize: expected windows of at most 255 "
                        "elements, found [16, 16]"));
  for (const char* attr : {"global_pooling", "adaptive"}) {
    EXPECT_THAT(Infer(Argmax("f32[B,2,20,20]", {{attr, true}})),
                HasSubstr("expected false, found true; Argmax is of windows of "
                          "ksize"));
  }
  EXPECT_THAT(Infer(Argmax("f32[B,2,4,4]", {{"pooling_type", "avg"}})),
              HasSubstr("expected max, found \"avg\"; a mean has no Argmax"));
}

TEST(Pool, GradientOfArgmax) {
  EXPECT_EQ(
      GradientInAllTypes(Argmax("T[B,8,S,9]", {{"ksize", Ints{3, 3}},
                                               {"strides", Ints{1, 2}},
                                               {"paddings", Ints{1, 0}}})),
      "max_pool2d_grad(OutGrad=dOut, Argmax=op.Argmax.0) {ksize=[3,3] "
      "strides=[1,2] paddings=[1,0] input_hw=[-1,9]} -> X.grad : "
      "f16[B,8,S,9]\n"
      "X <- X.grad\n");
  EXPECT_THAT(Infer({"max_pool2d_grad",
                     {{"OutGrad", "f32[B,8,3,3]"}, {"Argmax", "u8[B,8,3,3]"}},
                     {{"input_hw", Ints{5, 4}}}}),
              HasSubstr("slot OutGrad: expected the dims of input_hw, pooled "
                        "with these attributes, found f32[B,8,3,3]"));
}

TEST(Pool, MeansAreGrayMaximaClear) {
  Program program;
  Block& block = program.AddEntry("train").block();
  const ValueId x =
      block.AddFeed("x", TensorType{DType::kF32,
                                    Layout::kRowMajor,
                                    {Dim(1), Dim(1), Dim(4), Dim(4)}});
  const OpId max = OpBuilder(&block, "pool2d").In("X", x).Build().value();
  const OpId avg = OpBuilder(&block, "pool2d")
                       .In("X", x)
                       .Attr("pooling_type", "avg")
                       .Build()
                       .value();
  const OpSchema& schema = *Ops().Find("pool2d");
  EXPECT_EQ(schema.amp(block.op(max)), AmpClass::kClear);
  EXPECT_EQ(schema.amp(block.op(avg)), AmpClass::kGray);
}

}  // namespace
}  // namespace ops
}  // namespace halftone
