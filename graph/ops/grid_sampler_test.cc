#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;

TEST(GridSampler, GivesAnElementForEachPlace) {
  const auto sampled = [](std::string x, std::string grid, std::string mode,
                          std::string padding) {
    return Infer({"grid_sampler",
                  {{"X", x}, {"Grid", grid}},
                  {{"mode", mode}, {"padding_mode", padding}}});
  };
  EXPECT_EQ(sampled("f32[B,3,5,6]", "f32[B,7,2,2]", "nearest", "border"),
            "Output=f32[B,3,7,2]");
  EXPECT_THAT(sampled("f32[B,3,5]", "f32[B,7,2,2]", "nearest", "border"),
              HasSubstr("slot X: expected"));
  EXPECT_THAT(sampled("f32[B,3,5,6]", "f32[B,7,2,3]", "nearest", "border"),
              HasSubstr("slot Grid: expected"));
  EXPECT_THAT(sampled("f32[B,3,5,6]", "f32[4,7,2,2]", "nearest", "border"),
              HasSubstr("one grid for each of X"));
  EXPECT_THAT(sampled("f32[B,3,5,6]", "f32[B,7,2,2]", "bicubic", "border"),
              HasSubstr("mode: expected one of \"bilinear\", \"nearest\""));
  EXPECT_THAT(sampled("f32[B,3,5,6]", "f32[B,7,2,2]", "nearest", "edge"),
              HasSubstr("attribute padding_mode: expected"));
}

TEST(GridSampler, GradientsOfBoth) {
  EXPECT_EQ(GradientInAllTypes({"grid_sampler",
                                {{"X", "T[B,3,5,6]"}, {"Grid", "T[B,7,2,2]"}},
                                {{"align_corners", false}}}),
            "grid_sampler_grad_input(X=X, Grid=Grid, OutputGrad=dOutput) "
            "{align_corners=false} -> X.grad : f16[B,3,5,6]\n"
            "grid_sampler_grad_grid(X=X, Grid=Grid, OutputGrad=dOutput) "
            "{align_corners=false} -> Grid.grad : f16[B,7,2,2]\n"
            "X <- X.grad\nGrid <- Grid.grad\n");
}

}  // namespace
}  // namespace ops
}  // namespace halftone
