#include "runtime/train/resolve_fetches.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// As the compiler leaves it: w's gradient is unscaled by the update.
constexpr char kProgram[] = R"(program "p" dim B
cell w : f32[4] parameter trainable applied init=constant(1)
cell b : f32[4] parameter trainable applied init=constant(1)
cell @lr : f32[] scaler always init=constant(1)
cell w.velocity : f32[4] slot(w) applied init=constant(0)
cell b.velocity : f32[4] slot(b) applied init=constant(0)
entry train {
  feed x : f16[4]
  feed label : i64[B]
  feed g : f32[4]
  feed @inv_scale : f32[]
  feed @found_inf : bool[]
  fused: fusion(X=[x]) -> (Out=[r : f16[4]]) {pattern="p"} forward f16 WHITE_LIST body {
    feed x : f16[4]
    inner: relu(X=x) -> (Out=inner : f16[4]) forward f16 WHITE_LIST
    r: relu(X=inner) -> (Out=r : f16[4]) forward f16 WHITE_LIST
    return r
  }
  r.grad: relu_grad(Out=r, OutGrad=x) -> (XGrad=x.grad : f16[4]) backward f16 GRADIENT_OF <- r
  sum: all_reduce(X=[x.grad]) -> (Out=[w.low.grad.reduced : f16[4]]) {of="gradient", gradient_scale="pre", bucket=0} communicate f16 SCHEMA
  up: cast(X=w.low.grad.reduced) -> (Out=w.grad.up : f32[4]) {to=f32} optimize f32 SCHEMA
  momentum.0: momentum(Param=[w], Grad=[w.grad.up], Velocity=[w.velocity], LearningRate=@lr, FoundInf=@found_inf, InvScale=@inv_scale) -> (ParamOut=[w.next : f32[4]], VelocityOut=[w.velocity.next : f32[4]]) {weight_decay=0, mu=0.9, use_nesterov=false} optimize f32 SCHEMA
  momentum.1: momentum(Param=[b], Grad=[g], Velocity=[b.velocity], LearningRate=@lr, FoundInf=@found_inf) -> (ParamOut=[b.next : f32[4]], VelocityOut=[b.velocity.next : f32[4]]) {weight_decay=0, mu=0.9, use_nesterov=false} optimize f32 SCHEMA
  result r = r
  result @found_inf = @found_inf
}
)";

class ResolveFetchesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto program = Parse(kProgram, "test");
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = *std::move(program);
  }
  std::vector<Fetch> Resolve(const std::vector<std::string>& texts,
                             const Program* unlowered = nullptr) {
    auto fetches = ResolveFetches(*program_, texts, unlowered);
    EXPECT_TRUE(fetches.ok()) << fetches.status();
    return fetches.ok() ? *std::move(fetches) : std::vector<Fetch>();
  }
  std::vector<std::string> Texts(const std::vector<std::string>& texts,
                                 const Program* unlowered = nullptr) {
    std::vector<std::string> found;
    for (const Fetch& fetch : Resolve(texts, unlowered)) {
      found.push_back(fetch.text);
    }
    return found;
  }
  std::string ErrorOf(const std::string& text) {
    const absl::Status status = ResolveFetches(*program_, {text}).status();
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kUsage) << status;
    return std::string(status.message());
  }
  std::unique_ptr<Program> program_;
};

// Values are unscaled on the host; exponents are those that were reduced.
TEST_F(ResolveFetchesTest, GradientsOfParameters) {
  const auto fetches =
      Resolve({"w.grad:hist", "w.grad:exponents", "b.grad:norm"});
  ASSERT_EQ(fetches.size(), 3u);
  EXPECT_EQ(fetches[0].kept, "w.grad.up");
  EXPECT_TRUE(fetches[0].unscale);
  EXPECT_EQ(fetches[1].kept, "w.low.grad.reduced");
  EXPECT_FALSE(fetches[1].unscale);
  EXPECT_TRUE(fetches[1].scaled);
  EXPECT_EQ(fetches[2].kept, "g");
  EXPECT_FALSE(fetches[2].unscale);
}

TEST_F(ResolveFetchesTest, OtherValuesHaveTheScaleInBackwardAlone) {
  const auto fetches = Resolve({"x.grad:exponents", "r:exponents", "w:norm"});
  ASSERT_EQ(fetches.size(), 3u);
  EXPECT_EQ(fetches[0].kept, "x.grad");
  EXPECT_TRUE(fetches[0].scaled);
  EXPECT_FALSE(fetches[1].scaled);
  EXPECT_FALSE(fetches[2].scaled);
}

TEST_F(ResolveFetchesTest, GlobsTakeParametersGradientsFirst) {
  EXPECT_THAT(Texts({"*.grad:exponents"}),
              ElementsAre("w.grad:exponents", "b.grad:exponents"));
  EXPECT_THAT(Texts({"x.gra?"}), ElementsAre("x.grad"));
  EXPECT_THAT(Texts({"w*:norm"}), ElementsAre("w.grad:norm"));
  EXPECT_THAT(Texts({"*.next:norm"}),
              ElementsAre("w.next:norm", "w.velocity.next:norm", "b.next:norm",
                          "b.velocity.next:norm"));
  // Each once.
  EXPECT_THAT(Texts({"w.grad", "?.grad"}), ElementsAre("w.grad", "b.grad"));
}

TEST_F(ResolveFetchesTest, GlobsFindWhatLoweringHides) {
  const auto unlowered = Parse(R"(
program "p" dim B
entry train {
  feed x : f16[4]
  inner: relu(X=x) -> (Out=inner : f16[4]) forward f16 WHITE_LIST
  r: relu(X=inner) -> (Out=r : f16[4]) forward f16 WHITE_LIST
  result r = r
}
)",
                               "test");
  ASSERT_TRUE(unlowered.ok()) << unlowered.status();
  EXPECT_THAT(Texts({"inn*:norm", "r*:norm"}, unlowered->get()),
              ElementsAre("inner:norm", "r:norm"));
  EXPECT_THAT(ErrorOf("inn*:norm"),
              AllOf(HasSubstr("--fetch inn*:norm"),
                    HasSubstr("gradients are w.grad b.grad")));
}

TEST_F(ResolveFetchesTest, ExponentsAreOfFloats) {
  EXPECT_THAT(ErrorOf("label:exponents"), HasSubstr("the value is i64"));
  EXPECT_THAT(ErrorOf("labe*:exponents"), HasSubstr("in f32, f16 or bf16"));
  EXPECT_THAT(Texts({"labe*:norm"}), ElementsAre("label:norm"));
}

TEST_F(ResolveFetchesTest, WhatAnExecutorKeeps) {
  const auto values =
      ValuesToKeep(*program_, {"w.grad", "w.grad:norm", "r", "@found_inf"});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT(values->always, ElementsAre());
  // Of the results the scalar is there anyway.
  EXPECT_THAT(values->fetched, ElementsAre("w.grad.up", "@inv_scale", "r"));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
