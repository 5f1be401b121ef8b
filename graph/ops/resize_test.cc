#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;

Call Bilinear(std::string x,
              std::vector<std::pair<std::string, AttrValue>> attrs) {
  return {"bilinear_interp_v2", {{"X", x}}, attrs};
}

TEST(Resize, SizesOrScales) {
  EXPECT_EQ(Infer(Bilinear("f32[B,3,5,7]", {{"out_h", 9}, {"out_w", 2}})),
            "Out=f32[B,3,9,2]");
  EXPECT_EQ(Infer(Bilinear("f16[B,3,5,7]", {{"scale", Floats{1.5}}})),
            "Out=f16[B,3,7,10]");
  EXPECT_EQ(Infer(Bilinear("f32[B,3,5,7]@channels_last",
                           {{"scale", Floats{2, 0.5}}})),
            "Out=f32[B,3,10,3] @channels_last");
  EXPECT_EQ(Infer({"nearest_interp_v2",
                   {{"X", "f32[B,3,2,3,4]"}},
                   {{"scale", Floats{2}}}}),
            "Out=f32[B,3,4,6,8]");
  EXPECT_EQ(Infer({"linear_interp_v2", {{"X", "f32[B,3,5]"}}, {{"out_w", 4}}}),
            "Out=f32[B,3,4]");
}

TEST(Resize, Errors) {
  EXPECT_EQ(Infer(Bilinear("f32[B,3,5,7]", {{"out_h", 9}})),
            "op (bilinear_interp_v2): attribute out_w: expected 1 or more, or "
            "a scale, found -1");
  EXPECT_EQ(Infer(Bilinear("f32[B,3,5,S]", {{"scale", Floats{2}}})),
            "op (bilinear_interp_v2): slot X: expected constant H and W from "
            "1 up, found f32[B,3,5,S]");
  EXPECT_THAT(Infer(Bilinear("f32[B,3,5,7]", {{"scale", Floats{2, 2, 2}}})),
              HasSubstr("attribute scale: expected 1 number or 2 (height, "
                        "width), found"));
  EXPECT_THAT(Infer(Bilinear("f32[B,3,5,7]", {{"scale", Floats{-1}}})),
              HasSubstr("attribute scale: expected finite numbers above 0"));
  EXPECT_THAT(Infer(Bilinear("f32[B,3,5,7]", {{"scale", Floats{1e30}}})),
              HasSubstr("attribute scale"));
  EXPECT_THAT(Infer(Bilinear("f32[B,3,5,7]", {{"scale", Floats{0.1}}})),
              HasSubstr("one that leaves a size of 1 or more"));
  EXPECT_THAT(Infer(Bilinear("f32[B,3,5]", {{"out_h", 9}, {"out_w", 2}})),
              HasSubstr("slot X: expected [N, C, H, W] (rank 4)"));
}

TEST(Resize, GradientHasItsAttributes) {
  EXPECT_EQ(GradientInAllTypes(Bilinear("T[B,3,4,4]", {{"scale", Floats{2}},
                                                       {"align_corners", false},
                                                       {"align_mode", 0}})),
            "bilinear_interp_v2_grad(OutGrad=dOut, X=X) {scale=[2] "
            "align_corners=false align_mode=0} -> X.grad : f16[B,3,4,4]\n"
            "X <- X.grad\n");
}

TEST(PixelShuffle, AndBack) {
  EXPECT_EQ(
      Infer(
          {"pixel_shuffle", {{"X", "u8[B,12,3,S]"}}, {{"upscale_factor", 2}}}),
      "Out=u8[B,3,6,S*2]");
  EXPECT_EQ(Infer({"pixel_unshuffle",
                   {{"X", "f32[B,3,6,4]"}},
                   {{"upscale_factor", 2}}}),
            "Out=f32[B,12,3,2]");
  EXPECT_EQ(
      Infer(
          {"pixel_shuffle", {{"X", "f32[B,6,3,3]"}}, {{"upscale_factor", 2}}}),
      "op (pixel_shuffle): slot X: expected C to be a multiple of "
      "upscale_factor squared, found f32[B,6,3,3]");
  EXPECT_THAT(Infer({"pixel_shuffle",
                     {{"X", "f32[B,4,3,3]"}},
                     {{"upscale_factor", INT64_MAX}}}),
              HasSubstr("attribute upscale_factor: expected 1 to 32767"));
  EXPECT_EQ(
      Gradient(
          {"pixel_shuffle", {{"X", "T[B,4,3,3]"}}, {{"upscale_factor", 2}}}),
      "pixel_unshuffle(X=dOut) {upscale_factor=2} -> X.grad : "
      "f16[B,4,3,3]\nX <- X.grad\n");
}

}  // namespace
}  // namespace ops
}  // namespace halftone
