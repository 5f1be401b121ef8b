#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;

TEST(ReduceMax, DropsAxes) {
  const auto reduce = [](std::string x, Ints dim, bool keep = false) {
    return Infer(
        {"reduce_max", {{"X", x}}, {{"dim", dim}, {"keep_dim", keep}}});
  };
  EXPECT_EQ(reduce("f32[B,S,4]", {1}), "Out=f32[B,4]");
  EXPECT_EQ(reduce("i64[B,S,4]", {-1, 0}, true), "Out=i64[1,S,1]");
  EXPECT_EQ(reduce("f16[B,S]", {}), "Out=f16[]");
  EXPECT_THAT(reduce("f32[B,S]", {2}), HasSubstr("attribute dim"));
  EXPECT_THAT(reduce("bool[B,S]", {1}), HasSubstr("slot X"));
}

TEST(ReduceMax, AllTiesHaveTheGradient) {
  EXPECT_EQ(
      GradientInAllTypes({"reduce_max", {{"X", "T[B,4]"}}, {{"dim", Ints{1}}}}),
      "broadcast_like(X=op.Out, Like=X) {dim=[1]} -> op.grad.Out : f16[B,4]\n"
      "broadcast_like(X=dOut, Like=X) {dim=[1]} -> op.grad.1.Out : f16[B,4]\n"
      "equal(X=X, Y=op.grad.Out) -> op.grad.2.Out : bool[B,4]\n"
      "fill_constant() {dtype=f16 value=0} -> op.grad.3.Out : f16[]\n"
      "where(Condition=op.grad.2.Out, X=op.grad.1.Out, Y=op.grad.3.Out) -> "
      "op.grad.4.Out : f16[B,4]\n"
      "X <- op.grad.4.Out\n");
}

TEST(Arg, GivesPlaces) {
  const auto arg = [](std::string x,
                      std::vector<std::pair<std::string, AttrValue>> attrs) {
    return Infer({"arg_max", {{"X", x}}, attrs});
  };
  EXPECT_EQ(arg("f16[B,S,4]", {}), "Out=i64[B,S]");
  EXPECT_EQ(arg("f16[B,S,4]", {{"axis", 1}, {"keepdims", true}}),
            "Out=i64[B,1,4]");
  EXPECT_EQ(arg("i32[B,4]", {{"flatten", true}, {"dtype", DType::kI32}}),
            "Out=i32[]");
  EXPECT_EQ(arg("f32[B,4]", {{"flatten", true}, {"keepdims", true}}),
            "Out=i64[1,1]");
  EXPECT_THAT(arg("f32[B,4]", {{"axis", 2}}), HasSubstr("attribute axis"));
  EXPECT_THAT(arg("f32[B,0]", {}),
              HasSubstr("slot X: expected elements along the axis"));
  EXPECT_THAT(arg("f32[B,4]", {{"dtype", DType::kF32}}), HasSubstr("dtype"));
}

TEST(Norm, DropsItsAxis) {
  EXPECT_EQ(Infer({"p_norm", {{"X", "f32[B,4]"}}}), "Out=f32[B]");
  EXPECT_EQ(Infer({"p_norm",
                   {{"X", "f32[B,4]"}},
                   {{"axis", 0}, {"keepdim", true}, {"porder", 1.0}}}),
            "Out=f32[1,4]");
  EXPECT_EQ(Infer({"p_norm", {{"X", "f32[B,4]"}}, {{"asvector", true}}}),
            "Out=f32[]");
}

TEST(Scan, GradientComesFromTheOtherEnd) {
  EXPECT_EQ(Infer({"cumsum", {{"X", "f32[B,4]"}}, {{"flatten", true}}}),
            "Out=f32[B*4]");
  EXPECT_EQ(
      GradientInAllTypes(
          {"cumsum", {{"X", "T[B,4]"}}, {{"axis", 1}, {"exclusive", true}}}),
      "cumsum(X=dOut) {axis=1 exclusive=true reverse=true} -> X.grad : "
      "f16[B,4]\nX <- X.grad\n");
  EXPECT_EQ(
      GradientInAllTypes({"cumsum",
                          {{"X", "T[B,4]"}},
                          {{"flatten", true}, {"reverse", true}}}),
      "cumsum(X=dOut) {flatten=true reverse=false} -> op.grad.Out : f16[B*4]\n"
      "reshape_like(X=op.grad.Out, Like=X) -> X.grad : f16[B,4]\n"
      "X <- X.grad\n");
}

}  // namespace
}  // namespace ops
}  // namespace halftone
