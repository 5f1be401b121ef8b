#include "graph/schema/grad_context.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/schema/test_ops.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;

class GradContextTest : public SchemaTest {
 protected:
  GradContextTest() {
    Decision decision;
    decision.precision = DType::kF16;
    decision.reason = Reason::kWhiteList;
    matmul_ = *OpBuilder(&block_, "matmul")
                   .Name("fc")
                   .In("X", x_)
                   .In("Y", y_)
                   .Attr("alpha", 2.0)
                   .Out("Out", "h")
                   .Why(decision)
                   .Line(7)
                   .Build();
  }
  const Op& op(OpId id) { return block_.op(id); }

  ValueId x_ = Feed("x", DType::kF16, {batch_, 4});
  ValueId y_ = Feed("y", DType::kF16, {4, 3});
  ValueId g_ = Feed("h.grad", DType::kF16, {batch_, 3});
  OpId matmul_;
};

TEST_F(GradContextTest, Sees) {
  const GradContext g(&block_, matmul_, {g_}, {true, false});
  EXPECT_TRUE(g.Has("X"));
  EXPECT_FALSE(g.Has("Bias"));
  EXPECT_EQ(g.InputCount("Bias"), 0);
  EXPECT_EQ(g.Input("Y"), y_);
  EXPECT_EQ(g.Output("Out"), block_.FindValue("h"));
  EXPECT_EQ(g.OutGrad("Out"), g_);
  EXPECT_FALSE(g.OutGrad("Rows").valid());  // absent
  EXPECT_TRUE(g.Wants("X"));
  EXPECT_FALSE(g.Wants("Y"));
  EXPECT_FALSE(g.Wants("Bias"));
  EXPECT_EQ(g.Attr("alpha"), AttrValue(2.0));
  EXPECT_EQ(block_.program().name_of(g.GradName("X")), "x.grad");
  EXPECT_DEATH(g.Input("Bias"), "slot Bias is absent");
  EXPECT_DEATH(g.Input("Z"), "no slot Z");
  EXPECT_DEATH(GradContext(&block_, matmul_, {}, {true, true}),
               "one gradient per output");
}

TEST_F(GradContextTest, EmitsBackwardOps) {
  GradContext g(&block_, matmul_, {g_}, {true, true});
  ASSERT_TRUE(op(matmul_).schema->RunGrad(g).ok());
  ASSERT_EQ(g.in_grads().size(), 2);
  EXPECT_EQ(g.in_grads()[0], block_.FindValue("x.grad"));
  EXPECT_EQ(g.in_grads()[1], block_.FindValue("given"));
  const Op& made = op(block_.value(g.in_grads()[0]).op());
  EXPECT_EQ(block_.name(made), "fc.grad");
  EXPECT_EQ(made.role, Role::kBackward);
  EXPECT_EQ(made.line, 7);
  EXPECT_EQ(made.decision.reason, Reason::kGradientOf);
  EXPECT_EQ(made.decision.precision, DType::kF16);
  EXPECT_THAT(made.decision.because_of, ElementsAre(op(matmul_).name));
  const Op& second = op(block_.value(g.in_grads()[1]).op());
  EXPECT_EQ(block_.name(second), "fc.grad.1");
  EXPECT_EQ(AttrAs<double>(second, "scale"), 2.0);
}

TEST_F(GradContextTest, PartialGradientsGetNamesOfTheirOwn) {
  for (const char* name : {"x.grad", "x.grad.1", "x.grad.2"}) {
    GradContext g(&block_, matmul_, {g_}, {true, false});
    ASSERT_TRUE(op(matmul_).schema->RunGrad(g).ok());
    EXPECT_EQ(block_.name(g.in_grads()[0]), name);
    EXPECT_FALSE(g.in_grads()[1].valid());
  }
}

TEST_F(GradContextTest, HandsOn) {
  const ValueId z = Feed("z", DType::kF16, {batch_, 4});
  const OpId sum =
      *OpBuilder(&block_, "sum").In("X", {x_, z}).Out("Out", "s").Build();
  GradContext g(&block_, sum, {z}, {false, true});
  ASSERT_TRUE(op(sum).schema->RunGrad(g).ok());
  EXPECT_THAT(g.in_grads(), ElementsAre(ValueId(), z));
}

TEST_F(GradContextTest, GradientsHaveTheDimsOfTheirValue) {
  GradContext g(&block_, matmul_, {g_}, {true, true});
  const absl::Status status =
      g.SetGrad("X", g.Emit("like").In("X", g.Input("Y")));
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kCompilerBug);
  EXPECT_EQ(Message(status),
            "fc (matmul): gradient of slot X: expected the dims of f16[B,4], "
            "found f16[4,3]");
  EXPECT_FALSE(g.SetGrad("X", g.Emit("lik")).ok());
}

TEST_F(GradContextTest, NoGradientIsAnError) {
  const OpId like = *OpBuilder(&block_, "like").In("X", x_).Build();
  GradContext g(&block_, like, {g_}, {true});
  EXPECT_EQ(Message(op(like).schema->RunGrad(g)), "op like has no gradient");
}

}  // namespace
}  // namespace halftone
