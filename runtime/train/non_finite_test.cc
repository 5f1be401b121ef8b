#include "runtime/train/non_finite.h"

#include <memory>

#include "gmock/gmock.h"
#include "graph/ir/well_known.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// As the compiler leaves it: a fusion, a cast, their gradients.
constexpr char kProgram[] = R"(program "p" dim B
entry train {
  feed x : f32[B,4]
  feed y : f16[B,4]
  feed g : f16[B,4]
  x.cast_fp16: cast(X=x) -> (Out=x.cast_fp16 : f16[B,4]) {to=f16} forward f16 WHITE_LIST <- fc
  sum.fused: fusion(X=[x.cast_fp16, y]) -> (Out=[r : f16[B,4]]) {pattern="p"} forward f16 GRAY_ALL_LOW origins=[fc, r] body {
    feed x.cast_fp16 : f16[B,4]
    feed y : f16[B,4]
    fc: elementwise_add(X=x.cast_fp16, Y=y) -> (Out=fc : f16[B,4]) forward f16 WHITE_LIST
    r: relu(X=fc) -> (Out=r : f16[B,4]) forward f16 GRAY_ALL_LOW <- fc
    return r
  }
  fc.grad: relu_grad(Out=r, OutGrad=g) -> (XGrad=fc.grad : f16[B,4]) backward f16 GRADIENT_OF <- r
}
)";

class NonFiniteNames : public ::testing::Test {
 protected:
  void SetUp() override {
    auto program = Parse(kProgram, "test");
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = *std::move(program);
  }
  NonFiniteOp Describe(const std::string& op,
                       const std::string& input = "") const {
    return DescribeNonFinite(*program_, {op, input}, {"fc", "r"});
  }
  std::unique_ptr<Program> program_;
};

TEST_F(NonFiniteNames, NamesTheModelsOps) {
  EXPECT_EQ(Describe("fc").text, "fc");
  EXPECT_EQ(Describe("fc").low_op, "fc");
  EXPECT_EQ(Describe("r").text, "r");
  // What a cast loses, its reader lacks.
  EXPECT_EQ(Describe("x.cast_fp16").text,
            "fc (its input x does not fit into f16)");
  EXPECT_EQ(Describe("x.cast_fp16").low_op, "fc");
  // And where nothing was lost, for it was so before:
  EXPECT_EQ(Describe("x.cast_fp16", "x").text,
            "fc (its input x is not finite)");
  EXPECT_EQ(Describe("fc", "y").text, "fc (its input y is not finite)");
  EXPECT_EQ(Describe("fc", "y").low_op, "");
  EXPECT_EQ(Describe("fc", "y").feed, "y");
  EXPECT_EQ(Describe("fc").feed, "");
  EXPECT_EQ(Describe("fc.grad").text, "fc.grad (backward of r)");
  EXPECT_EQ(Describe("fc.grad").low_op, "r");
}

TEST_F(NonFiniteNames, PositionsAreThoseOfTheProgram) {
  const Entry& entry = *program_->FindEntry(kTrainEntry);
  const char* const order[] = {"x.cast_fp16", "sum.fused", "fc",
                               "r",           "fc.grad",   "nobody"};
  for (int i = 0; i + 1 < 6; ++i) {
    EXPECT_LT(PositionOf(entry, order[i]), PositionOf(entry, order[i + 1]));
  }
}

TEST(WhatToTryTest, FitsTheRun) {
  TrainConfig config;
  config.strategy.mutable_lr()->set_base(1);
  config.strategy.mutable_amp()->set_level("O1");
  config.strategy.mutable_amp()
      ->mutable_loss_scaling()
      ->set_use_dynamic_loss_scaling(true);
  StepRecord record;
  EXPECT_THAT(WhatToTry(config, record, {"conv2", "conv2"}),
              AllOf(HasSubstr("; try a lower learning rate (--lr 0.1)"),
                    HasSubstr("--black-op conv2"), HasSubstr("--dtype bf16"),
                    Not(HasSubstr("halftone compile"))));
  config.compiled_path = "a b.htc";
  EXPECT_THAT(WhatToTry(config, record, {"conv *", "conv *"}),
              AllOf(HasSubstr("--black-op 'conv *'"),
                    HasSubstr("halftone compile 'a b.htc' ... -o new.htc")));
  config.strategy.mutable_amp()->set_level("O0");
  EXPECT_EQ(WhatToTry(config, record, {}),
            "; try a lower learning rate (--lr 0.1) or warm-up (--set "
            "lr.warmup_epochs=1)");
  config.strategy.mutable_lr()->set_warmup_steps(5);
  EXPECT_EQ(WhatToTry(config, record, {}),
            "; try a lower learning rate (--lr 0.1)");
}

TEST(WhatToTryTest, NothingElseMendsData) {
  TrainConfig config;
  config.data = "npz:my data.npz";
  EXPECT_EQ(WhatToTry(config, StepRecord(), {"fc", "", "x"}),
            "; x is data: mend the samples of --data 'npz:my data.npz' that "
            "are not finite, or leave them out");
}

TEST(WhatToTryTest, OnlyWhatTheCompilerTakes) {
  TrainConfig config;
  config.strategy.mutable_amp()->set_level("O1");
  config.accepts = [](const std::string& path, const std::string& value) {
    return path == "amp.level" && value == "O0";
  };
  EXPECT_EQ(WhatToTry(config, StepRecord(), {"conv2", "conv2"}),
            "; try all in f32, to see whether precision is to blame: --level "
            "O0");
  config.accepts = [](const std::string&, const std::string&) { return false; };
  EXPECT_EQ(WhatToTry(config, StepRecord(), {"conv2", "conv2"}), "");
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
