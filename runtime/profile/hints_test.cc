#include "runtime/profile/hints.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "graph/base/dtype.h"
#include "graph/base/layout.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace runtime {
namespace {

constexpr char kProgram[] = R"(
program "p" dim B
entry train {
  feed x : f32[B,5]
  feed h : f16[B,5]
  feed v : f32[5,16]
  feed l : f16[5,16]
  feed k : f16[B,16]
  a: matmul(X=x, Y=v) -> (Out=a : f32[B,16])   forward f32 BLACK_LIST
  b: matmul(X=x, Y=v) -> (Out=b : f32[B,16])   forward f32 USER_BLACK
  c: matmul(X=x, Y=v) -> (Out=c : f32[B,16])   forward f32 LEVEL
  d: matmul(X=h, Y=l) -> (Out=d : f16[B,16])   forward f16 WHITE_LIST
  e: matmul(X=k, Y=l) -> (Out=e : f16[B,5]) {trans_y=true}   forward f16 WHITE_LIST
  s: sigmoid(X=a) -> (Out=s : f32[B,16])   forward
  q: square(X=s) -> (Out=q : f32[B,16])   forward
  f: fusion(X=[q, s]) -> (Out=[y : f32[B,16], z : f32[16]]) {pattern="relu_grad_bias"}   backward body {
    feed i : f32[B,16]
    feed j : f32[B,16]
    t: relu_grad(Out=i, OutGrad=j) -> (XGrad=t : f32[B,16])   backward
    r: reduce_sum(X=t) -> (Out=r : f32[16]) {dim=[0]}   backward
    return t, r
  }
  result y = y
  result z = z
  result b = b
  result c = c
  result d = d
  result e = e
}
)";

class HintsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    kernels::Candidate candidate;
    candidate.name = "fast";
    registry_.Add("matmul", {DType::kF32, DType::kF32}, Layout::kRowMajor,
                  candidate);
    registry_.Add("matmul", {DType::kF16, DType::kF16}, Layout::kRowMajor,
                  candidate);
    registry_.Add("sigmoid", {DType::kF32}, Layout::kRowMajor, candidate);
    registry_.Add("relu_grad", {DType::kF32}, Layout::kRowMajor, candidate);
    registry_.Add("reduce_sum", {DType::kF32, DType::kF32}, Layout::kRowMajor,
                  candidate);
    candidate.name = "reference";
    registry_.Add("square", {DType::kF32}, Layout::kRowMajor, candidate);
    PlanRequest request;
    request.program = program_.get();
    request.entry = "train";
    request.symbols[0] = 2;
    auto plan =
        MakePlan(request, registry_, LayOutState(*program_), TuningTable());
    ASSERT_TRUE(plan.ok()) << plan.status();
    plan_ = *std::move(plan);
  }
  std::string HintOf(const std::string& name, std::optional<Bound> bound = {}) {
    const Hints hints(plan_, *FindTarget("sm_90"));
    for (const Step& step : plan_.steps) {
      if (step.name == name) return hints.For(step, bound);
    }
    return "no such step";
  }

  std::unique_ptr<Program> program_ = *Parse(kProgram, "test.ht");
  kernels::KernelRegistry registry_;
  Plan plan_;
};

TEST_F(HintsTest, ProductsInF32SayWhy) {
  EXPECT_EQ(HintOf("a"), "in f32 by BLACK_LIST: --white matmul");
  EXPECT_EQ(HintOf("b"), "in f32 by USER_BLACK: the strategy's choice");
  EXPECT_EQ(HintOf("c"), "");
}

TEST_F(HintsTest, TensorCoresWantWholeGroups) {
  EXPECT_EQ(HintOf("d"), "5 columns: no multiple of 8");
  EXPECT_EQ(HintOf("e"), "5 columns: no multiple of 8");
  const Hints cpu(plan_, CpuTarget());
  for (const Step& step : plan_.steps) {
    EXPECT_THAT(cpu.For(step, Bound::kFlops),
                ::testing::Not(::testing::HasSubstr("multiple")));
  }
}

TEST_F(HintsTest, WhatElseIsKnown) {
  EXPECT_EQ(HintOf("s"), "");
  EXPECT_EQ(HintOf("s", Bound::kLaunch),
            "too small for a launch: a larger batch");
  EXPECT_EQ(HintOf("s", Bound::kBytes),
            "moves memory for itself alone: in no fusion");
  EXPECT_EQ(HintOf("q"),
            "plain loops: no faster kernel takes these types and shapes");
  EXPECT_EQ(HintOf("t"), "of f, which no relu_grad_bias kernel takes");
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
