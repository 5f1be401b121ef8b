#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;

Call Seed(std::string loss, std::string count = "f32[]") {
  return {"gradient_seed",
          {{"LossScaling", "f32[]"},
           {"Count", count},
           {"LargestCount", "f32[]"},
           {"Loss", loss}}};
}

TEST(GradientSeed, HasTheDimsOfTheLoss) {
  EXPECT_EQ(Infer(Seed("f32[]")), "Out=f32[]");
  EXPECT_EQ(Infer(Seed("f32[1,1]")), "Out=f32[1,1]");
  EXPECT_EQ(Infer(Seed("f32[]", "f32[1]")),
            "op (gradient_seed): slot Count: expected a scalar, dims [], "
            "found f32[1]; reshape a value of one element to shape []");
}

TEST(GradientInvScale, IsAScalar) {
  Call call = {
      "gradient_inv_scale",
      {{"LossScaling", "f32[]"}, {"Count", "f32[]"}, {"LargestCount", "f32[]"}},
      {{"gradient_scale", "post"}}};
  EXPECT_EQ(Infer(call), "InvScale=f32[]");
  call.attrs = {{"gradient_scale", "none"}};
  EXPECT_THAT(Infer(call), HasSubstr("attribute gradient_scale: expected one "
                                     "of \"pre\", \"post\", found \"none\""));
}

TEST(CountShare, HasTheDimsOfTheTotal) {
  const auto share = [](std::string total, std::string count) {
    return Infer(
        {"count_share",
         {{"Total", total}, {"Count", count}, {"AllCounts", "f32[]"}}});
  };
  EXPECT_EQ(share("f32[]", "f32[]"), "Out=f32[]");
  EXPECT_EQ(share("f32[1]", "f32[]"), "Out=f32[1]");
  EXPECT_THAT(share("f32[]", "f32[1]"),
              HasSubstr("slot Count: expected a scalar"));
}

TEST(CheckFinite, OneNormPerGradient) {
  EXPECT_EQ(Infer({"check_finite",
                   {{"Low", "f16[4,4] f16[4]"},
                    {"F32", "f32[8]"},
                    {"Stats", "f32[8] f32[8]"},
                    {"InvScale", "f32[]"}}}),
            "FoundInf=bool[]; FirstBad=i32[]; SquaredNorm=f32[3]");
  EXPECT_EQ(Infer({"check_finite", {{"InvScale", "f32[]"}}}),
            "FoundInf=bool[]; FirstBad=i32[]; SquaredNorm=f32[0]");
  EXPECT_THAT(
      Infer({"check_finite", {{"Low", "f32[4]"}, {"InvScale", "f32[]"}}}),
      HasSubstr("slot Low: expected f16 or bf16, found f32[4]"));
}

TEST(Unscale, GivesF32) {
  EXPECT_EQ(
      Infer({"unscale",
             {{"X", "f16[8,3,3,3]@channels_last"}, {"InvScale", "f32[]"}}}),
      "Out=f32[8,3,3,3] @channels_last");
  EXPECT_EQ(Infer({"clip_by_factor", {{"X", "f32[8]"}, {"Factor", "f32[]"}}}),
            "Out=f32[8]");
  EXPECT_THAT(Infer({"unscale", {{"X", "f16[8]"}, {"InvScale", "f32[8]"}}}),
              HasSubstr("slot InvScale: expected a scalar"));
}

Call Update(std::vector<std::pair<std::string, AttrValue>> attrs = {}) {
  return {"update_loss_scaling",
          {{"LossScaling", "f32[]"},
           {"GoodSteps", "i32[]"},
           {"BadSteps", "i32[]"},
           {"FoundInf", "bool[]"}},
          attrs};
}

TEST(UpdateLossScaling, Outputs) {
  EXPECT_EQ(Infer(Update()),
            "LossScalingOut=f32[]; GoodStepsOut=i32[]; BadStepsOut=i32[]");
  // A constant scale is the same op.
  EXPECT_THAT(Infer(Update({{"incr_ratio", 1.0}, {"decr_ratio", 1.0}})),
              HasSubstr("LossScalingOut=f32[]"));
}

TEST(UpdateLossScaling, Errors) {
  EXPECT_EQ(Infer(Update({{"incr_every_n_steps", 0}})),
            "op (update_loss_scaling): attribute incr_every_n_steps: expected "
            "1 or more, found 0");
  EXPECT_EQ(Infer(Update({{"incr_ratio", 0.5}})),
            "op (update_loss_scaling): attribute incr_ratio: expected a "
            "finite number >= 1, found 0.5");
  EXPECT_EQ(Infer(Update({{"decr_ratio", 2.0}})),
            "op (update_loss_scaling): attribute decr_ratio: expected a "
            "number from 0 to 1, found 2");
}

TEST(Clocks, AreScalars) {
  EXPECT_EQ(Infer({"tick", {{"X", "i64[]"}}}), "Out=i64[]");
  EXPECT_EQ(Infer({"tick_applied", {{"X", "i64[]"}, {"FoundInf", "bool[]"}}}),
            "Out=i64[]");
  EXPECT_THAT(Infer({"tick", {{"X", "i64[1]"}}}),
              HasSubstr("slot X: expected a scalar"));
}

TEST(GlobalNorm, OrderIsAPermutation) {
  const auto infer = [](Ints order) {
    return Infer(
        {"global_norm", {{"SquaredNorm", "f32[3]"}}, {{"order", order}}});
  };
  EXPECT_EQ(infer({}), "Norm=f32[]");
  EXPECT_EQ(infer({2, 0, 1}), "Norm=f32[]");
  EXPECT_EQ(infer({0, 1}),
            "op (global_norm): attribute order: expected [], or each of the "
            "[3] places of SquaredNorm once, found [0, 1]");
  EXPECT_THAT(infer({0, 1, 1}), HasSubstr("found [0, 1, 1]"));
  EXPECT_THAT(infer({0, 1, 3}), HasSubstr("found [0, 1, 3]"));
}

TEST(ClipFactor, NeedsANorm) {
  Call call = {"clip_factor", {{"Norm", "f32[]"}}, {{"max_norm", 1.0}}};
  EXPECT_EQ(Infer(call), "Factor=f32[]");
  call.attrs = {{"max_norm", -1.0}};
  EXPECT_THAT(Infer(call), HasSubstr("attribute max_norm: expected a finite "
                                     "number >= 0, found -1"));
  call.attrs = {};
  EXPECT_THAT(Infer(call), HasSubstr("attribute max_norm: expected float"));
}

}  // namespace
}  // namespace ops
}  // namespace halftone
