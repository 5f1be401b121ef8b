#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;

TEST(Lookup, GivesRows) {
  const auto lookup = [](std::string w, std::string ids, int64_t padding) {
    return Infer({"lookup_table_v2",
                  {{"W", w}, {"Ids", ids}},
                  {{"padding_idx", padding}}});
  };
  EXPECT_EQ(lookup("f32[10,4]", "i64[B,S]", -1), "Out=f32[B,S,4]");
  EXPECT_EQ(lookup("f16[10,4]", "i32[]", 9), "Out=f16[4]");
  EXPECT_THAT(lookup("f32[10,4]", "i64[B]", 10),
              HasSubstr("attribute padding_idx"));
  EXPECT_THAT(lookup("f32[10]", "i64[B]", -1), HasSubstr("[rows, width]"));
  EXPECT_THAT(lookup("f32[10,4]", "f32[B]", -1), HasSubstr("slot Ids"));
}

TEST(Lookup, GradientIsDense) {
  EXPECT_EQ(GradientInAllTypes({"lookup_table_v2",
                                {{"W", "T[10,4]"}, {"Ids", "i64[B]"}},
                                {{"padding_idx", 0}, {"is_sparse", true}}}),
            "gather_grad(X=W, Index=Ids, OutGrad=dOut) {padding_idx=0} -> "
            "W.grad : f16[10,4]\nW <- W.grad\n");
}

TEST(Gather, GivesSlices) {
  const auto gather = [](std::string x, std::string index, int64_t axis) {
    return Infer({"gather", {{"X", x}, {"Index", index}}, {{"axis", axis}}});
  };
  EXPECT_EQ(gather("u8[B,4]", "i64[3]", 1), "Out=u8[B,3]");
  EXPECT_EQ(gather("f16[5,4]", "i32[B,1]", 0), "Out=f16[B,4]");
  EXPECT_EQ(gather("f16[B,5,4]", "i64[]", -2), "Out=f16[B,4]");
  EXPECT_THAT(gather("f16[B,4]", "i64[2,3]", 1), HasSubstr("slot Index"));
  EXPECT_THAT(gather("f16[B,4]", "i64[2]", 2), HasSubstr("attribute axis"));
  EXPECT_EQ(GradientInAllTypes({"index_select",
                                {{"X", "T[B,4]"}, {"Index", "i64[3]"}},
                                {{"dim", 1}}}),
            "gather_grad(X=X, Index=Index, OutGrad=dOut) {axis=1} -> X.grad : "
            "f16[B,4]\nX <- X.grad\n");
}

TEST(Scatter, ReplacesSlices) {
  const auto scatter = [](std::string x, std::string ids, std::string updates,
                          int64_t axis) {
    return Infer({"scatter",
                  {{"X", x}, {"Ids", ids}, {"Updates", updates}},
                  {{"axis", axis}}});
  };
  EXPECT_EQ(scatter("u8[5,4]", "i64[B]", "u8[B,4]", 0), "Out=u8[5,4]");
  EXPECT_EQ(scatter("f16[B,4]", "i32[3,1]", "f16[B,3]", -1), "Out=f16[B,4]");
  EXPECT_EQ(scatter("f16[B,4]", "i64[]", "f16[4]", 0), "Out=f16[B,4]");
  EXPECT_THAT(scatter("f16[B,4]", "i64[2,3]", "f16[2,4]", 0),
              HasSubstr("slot Ids: expected [n], [n, 1] or a scalar"));
  EXPECT_THAT(scatter("f16[B,4]", "i64[2]", "f16[3,4]", 0),
              HasSubstr("slot Updates"));
  EXPECT_THAT(scatter("f16[B,4]", "i64[2]", "f16[2,4]", 2),
              HasSubstr("attribute axis"));
}

TEST(Scatter, GradientLeavesOutWhatWasReplaced) {
  EXPECT_EQ(
      GradientInAllTypes(
          {"scatter",
           {{"X", "T[B,4]"}, {"Ids", "i64[3]"}, {"Updates", "T[3,4]"}},
           {{"overwrite", false}}}),
      "fill_zeros_like(X=Updates) -> op.grad.Out : f16[3,4]\n"
      "scatter(X=dOut, Ids=Ids, Updates=op.grad.Out) {axis=0} -> X.grad : "
      "f16[B,4]\n"
      "gather(X=dOut, Index=Ids) {axis=0} -> Updates.grad : f16[3,4]\n"
      "X <- X.grad\nUpdates <- Updates.grad\n");
}

TEST(TakeAlongAxis, GivesElements) {
  const auto take = [](std::string x, std::string index, int64_t axis) {
    return Infer({"take_along_axis",
                  {{"Input", x}, {"Index", index}},
                  {{"Axis", axis}}});
  };
  EXPECT_EQ(take("u8[B,4]", "i64[B,7]", 1), "Result=u8[B,7]");
  EXPECT_EQ(take("f16[5,4]", "i32[2,4]", -2), "Result=f16[2,4]");
  EXPECT_THAT(take("f16[B,4]", "i64[4]", 1), HasSubstr("slot Index"));
  EXPECT_THAT(take("f16[B,4]", "i64[B,3]", 0), HasSubstr("slot Index"));
  EXPECT_THAT(take("f16[B,4]", "i64[B,2]", 2), HasSubstr("attribute Axis"));
  EXPECT_EQ(GradientInAllTypes({"take_along_axis",
                                {{"Input", "T[B,4]"}, {"Index", "i64[B,3]"}},
                                {{"Axis", 1}}}),
            "take_along_axis_grad(Input=Input, Index=Index, ResultGrad=dResult)"
            " {Axis=1} -> Input.grad : f16[B,4]\nInput <- Input.grad\n");
}

TEST(OneHot, AddsTheClasses) {
  EXPECT_EQ(Infer({"one_hot_v2", {{"X", "i64[B]"}}, {{"depth", 10}}}),
            "Out=f32[B,10]");
  EXPECT_THAT(Infer({"one_hot_v2", {{"X", "i64[B]"}}, {{"depth", 0}}}),
              HasSubstr("attribute depth"));
}

}  // namespace
}  // namespace ops
}  // namespace halftone
