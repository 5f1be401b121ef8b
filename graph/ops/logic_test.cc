#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;

TEST(Comparison, GivesBooleans) {
  const auto less = [](std::string x, std::string y) {
    return Infer({"less_than", {{"X", x}, {"Y", y}}});
  };
  EXPECT_EQ(less("f16[B,4]", "f16[4]"), "Out=bool[B,4]");
  EXPECT_EQ(less("i64[B,1]", "i64[S]"), "Out=bool[B,S]");
  EXPECT_THAT(less("f16[B,4]", "f32[4]"), HasSubstr("slot Y"));
  EXPECT_THAT(less("f16[B,4]", "f16[3]"), HasSubstr("slot Y: expected dims"));
  EXPECT_EQ(Infer({"logical_not", {{"X", "bool[B]"}}}), "Out=bool[B]");
}

TEST(Where, BroadcastsAllThree) {
  const auto where = [](std::string c, std::string x, std::string y) {
    return Infer({"where", {{"Condition", c}, {"X", x}, {"Y", y}}});
  };
  EXPECT_EQ(where("bool[B,1,S]", "f16[4,1]", "f16[]"), "Out=f16[B,4,S]");
  EXPECT_THAT(where("u8[B]", "f16[B]", "f16[]"), HasSubstr("slot Condition"));
  EXPECT_THAT(where("bool[B]", "f16[B]", "f16[4]"),
              HasSubstr("slot Y: expected dims that are 1 or equal [B]"));
}

TEST(Where, GradientGoesWhereItWasChosen) {
  EXPECT_EQ(GradientInAllTypes(
                {"where",
                 {{"Condition", "bool[B,4]"}, {"X", "T[B,4]"}, {"Y", "T[1,4]"}},
                 {},
                 {},
                 {},
                 {"Y"}}),
            "fill_constant() {dtype=f16} -> op.grad.Out : f16[]\n"
            "where(Condition=Condition, X=op.grad.Out, Y=dOut) -> "
            "op.grad.1.Out : f16[B,4]\n"
            "reduce_sum(X=op.grad.1.Out) {dim=[0] keep_dim=true} -> Y.grad : "
            "f16[1,4]\n"
            "Y <- Y.grad\n");
}

}  // namespace
}  // namespace ops
}  // namespace halftone
