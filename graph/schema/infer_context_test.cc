#include "graph/schema/infer_context.h"

#include <string>
#include <utility>
#include <vector>

#include "graph/base/dtype.h"
#include "graph/schema/op_registry.h"
#include "graph/schema/test_ops.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

class InferContextTest : public ::testing::Test {
 protected:
  InferContext Context(const char* op, SlotTypes inputs,
                       std::vector<int> outputs) {
    inputs_ = std::move(inputs);
    return InferContext(*Ops().Find(op), "fc0", inputs_, attrs_, outputs,
                        symbols_);
  }
  const TensorType x_ = MakeType(DType::kF32, {Dim::Symbol(0), 4});
  const TensorType y_ = MakeType(DType::kF16, {4, 3});
  const std::vector<std::string> symbols_ = {"B"};
  AttrList attrs_ = {{0, true}};
  SlotTypes inputs_;  // of the last context
};

TEST_F(InferContextTest, Inputs) {
  const InferContext c = Context("matmul", {{&x_}, {&y_}, {}}, {1, 0});
  EXPECT_TRUE(c.HasInput("X"));
  EXPECT_FALSE(c.HasInput("Bias"));
  EXPECT_EQ(c.Input("Y"), y_);
  EXPECT_EQ(c.InputList("X").size(), 1);
  EXPECT_TRUE(c.Bool("trans_x"));    // set
  EXPECT_EQ(c.Float("alpha"), 1.0);  // default
  EXPECT_EQ(c.Str("mode"), "plain");
  EXPECT_TRUE(c.Ints("axes").empty());
  EXPECT_DEATH(c.Input("Bias"), "not one value in Bias");
  EXPECT_DEATH(c.Input("Z"), "no slot Z");
  EXPECT_DEATH(c.Int("beta"), "no attribute beta");
}

TEST_F(InferContextTest, Outputs) {
  InferContext c = Context("matmul", {{&x_}, {&y_}, {}}, {1, 0});
  EXPECT_EQ(c.OutputCount("Out"), 1);
  EXPECT_EQ(c.OutputCount("Rows"), 0);
  c.SetOutput("Out", {1, 2});
  c.SetOutput("Out", {1, 2}, 1);  // no such member: ignored
  c.SetOutput("Rows", {1});
  EXPECT_EQ(c.outputs()[0][0].dims, (Dims{1, 2}));
  EXPECT_TRUE(c.outputs()[1].empty());
  EXPECT_FALSE(c.SetsLayouts());
  c.SetOutputLayout("Out", Layout::kChannelsLast);
  EXPECT_TRUE(c.LayoutIsSet(0, 0));
  EXPECT_FALSE(c.LayoutIsSet(1, 0));
  EXPECT_DEATH(c.SetOutput("Zut", {1}), "no slot Zut");
}

TEST_F(InferContextTest, Errors) {
  const InferContext c = Context("matmul", {{&x_}, {&y_}, {}}, {1, 0});
  EXPECT_EQ(Message(c.SlotError("X", "[M,K]")),
            "fc0 (matmul): slot X: expected [M,K], found f32[B,4]");
  EXPECT_EQ(Message(c.SlotError("Bias", "[N]")),
            "fc0 (matmul): slot Bias: expected [N], found nothing");
  EXPECT_EQ(Message(c.Error("alpha is ", 3)), "fc0 (matmul): alpha is 3");
  const InferContext list = Context("sum", {{&x_, &y_}}, {2});
  EXPECT_EQ(Message(list.SlotError("X", "equal dims")),
            "fc0 (sum): slot X: expected equal dims, found [f32[B,4], "
            "f16[4,3]]");
}

}  // namespace
}  // namespace halftone
