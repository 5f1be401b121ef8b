#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;

TEST(Pad, AddsABorder) {
  const auto pad = [](std::string x, Ints paddings) {
    return Infer({"pad", {{"X", x}}, {{"paddings", paddings}}});
  };
  EXPECT_EQ(pad("f16[B,4]", {0, 0, 1, 2}), "Out=f16[B,7]");
  EXPECT_THAT(pad("f16[B,4]", {1, 0, 0, 0}), HasSubstr("constant dim 0"));
  EXPECT_THAT(pad("f16[B,4]", {0, 0, 1}), HasSubstr("4 numbers"));
  EXPECT_THAT(pad("f16[B,4]", {0, 0, -1, 0}), HasSubstr("numbers from 0 up"));
  EXPECT_EQ(GradientInAllTypes(
                {"pad", {{"X", "T[B,4]"}}, {{"paddings", Ints{0, 0, 1, 2}}}}),
            "slice(Input=dOut) {axes=[1] starts=[1] ends=[5]} -> X.grad : "
            "f16[B,4]\nX <- X.grad\n");
}

TEST(Pad3d, HasFourModes) {
  const auto pad = [](const char* mode, Ints paddings) {
    return Infer({"pad3d",
                  {{"X", "f16[B,2,3,4,5]"}},
                  {{"mode", mode}, {"paddings", paddings}}});
  };
  EXPECT_EQ(pad("constant", {1, 2, 3, 4, 5, 6}), "Out=f16[B,2,14,11,8]");
  EXPECT_EQ(pad("reflect", {4, 4, 3, 3, 2, 2}), "Out=f16[B,2,7,10,13]");
  EXPECT_THAT(pad("reflect", {5, 0, 0, 0, 0, 0}), HasSubstr("at most 4"));
  EXPECT_THAT(pad("circular", {6, 0, 0, 0, 0, 0}), HasSubstr("at most 5"));
  EXPECT_EQ(pad("replicate", {9, 0, 0, 0, 0, 0}), "Out=f16[B,2,3,4,14]");
  EXPECT_THAT(pad("reflected", {0, 0, 0, 0, 0, 0}),
              HasSubstr("nearest: reflect"));
  EXPECT_THAT(pad("constant", {1, 1}), HasSubstr("6 numbers"));
  EXPECT_THAT(Infer({"pad3d",
                     {{"X", "f16[B,2,3,4]"}},
                     {{"paddings", Ints{0, 0, 0, 0, 0, 0}}}}),
              HasSubstr("[N, C, D, H, W]"));
}

TEST(Expand, RepeatsDimsOfOne) {
  const auto expand = [](std::string x, Ints shape) {
    return Infer({"expand_v2", {{"X", x}}, {{"shape", shape}}});
  };
  EXPECT_EQ(expand("f16[B,1,4]", {-1, 3, 4}), "Out=f16[B,3,4]");
  EXPECT_EQ(expand("f16[1,4]", {2, 3, -1}), "Out=f16[2,3,4]");
  EXPECT_THAT(expand("f16[B,3]", {-1, 6}), HasSubstr("at dim 1"));
  EXPECT_THAT(expand("f16[B,3]", {3}), HasSubstr("at least 2 dims"));
  EXPECT_THAT(expand("f16[3]", {-1, 3}), HasSubstr("at dim 0"));
  EXPECT_EQ(GradientInAllTypes(
                {"expand_v2", {{"X", "T[1,4]"}}, {{"shape", Ints{2, 3, 4}}}}),
            "reduce_sum(X=dOut) {dim=[0,1]} -> op.grad.Out : f16[4]\n"
            "reshape_like(X=op.grad.Out, Like=X) -> X.grad : f16[1,4]\n"
            "X <- X.grad\n");
}

TEST(Tile, RepeatsWhole) {
  const auto tile = [](std::string x, Ints times) {
    return Infer({"tile", {{"X", x}}, {{"repeat_times", times}}});
  };
  EXPECT_EQ(tile("f16[B,4]", {2, 3}), "Out=f16[B*2,12]");
  EXPECT_EQ(tile("f16[B,4]", {3}), "Out=f16[B,12]");
  EXPECT_EQ(tile("f16[4]", {2, 3}), "Out=f16[2,12]");
  EXPECT_THAT(tile("f16[4]", {0}), HasSubstr("numbers from 1 up"));
  EXPECT_EQ(GradientInAllTypes(
                {"tile", {{"X", "T[B,4]"}}, {{"repeat_times", Ints{3}}}}),
            "reshape(X=dOut) {shape=[0,3,4]} -> op.grad.Out : f16[B,3,4]\n"
            "reduce_sum(X=op.grad.Out) {dim=[1]} -> op.grad.1.Out : f16[B,4]\n"
            "X <- op.grad.1.Out\n");
}

}  // namespace
}  // namespace ops
}  // namespace halftone
