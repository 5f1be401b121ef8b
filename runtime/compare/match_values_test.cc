#include "runtime/compare/match_values.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/ops/register_all.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<Program> ProgramOf(const std::string& ops,
                                   const std::string& feed = "f32[B,4]") {
  auto program = halftone::Parse(
      absl::StrCat("program \"p\" dim B\n",
                   "cell w : f32[4,4] parameter trainable applied "
                   "init=constant(0)\n",
                   "cell @loss_scaling : f32[] scaler always "
                   "init=constant(8)\n",
                   "entry train {\n  feed x : ", feed,
                   "\n  feed @largest_count : f32[]\n", ops, "}\n"),
      "test");
  EXPECT_TRUE(program.ok()) << program.status();
  return std::move(*program);
}

constexpr char kForward[] =
    "  fc: matmul(X=x, Y=w) -> (Out=fc : f32[B,4])   forward\n"
    "  y: relu(X=fc) -> (Out=y : f32[B,4])   forward\n";

std::vector<std::string> NamesOf(const ValueMatch& match) {
  std::vector<std::string> names;
  for (const MatchedValue& value : match.values) {
    names.push_back(absl::StrCat(value.name, " = ",
                                 match.references[value.reference].name));
  }
  return names;
}

absl::StatusOr<ValueMatch> Match(const std::string& reference,
                                 const std::string& compared) {
  return MatchValues(*ProgramOf(reference), *ProgramOf(compared), "train");
}

TEST(MatchValues, NamesOfCopiesAreThoseOfTheValue) {
  EXPECT_EQ(OriginalName("logits.cast_fp32"), "logits");
  EXPECT_EQ(OriginalName("x.cast_fp16.grad"), "x.grad");
  EXPECT_EQ(OriginalName("x.channels_last.cast_bf16.grad.1"), "x.grad.1");
  EXPECT_EQ(OriginalName("layer.cast"), "layer.cast");
}

TEST(MatchValues, CopiesInOtherDtypesAreTheValue) {
  const auto match = Match(
      kForward,
      "  x.cast_fp16: cast(X=x) -> (Out=x.cast_fp16 : f16[B,4]) {to=f16}   "
      "forward\n"
      "  w.cast_fp16: cast(X=w) -> (Out=w.cast_fp16 : f16[4,4]) {to=f16}   "
      "forward\n"
      "  fc: matmul(X=x.cast_fp16, Y=w.cast_fp16) -> (Out=fc : f16[B,4])   "
      "forward\n"
      "  fc.cast_fp32: cast(X=fc) -> (Out=fc.cast_fp32 : f32[B,4]) {to=f32}   "
      "forward\n"
      "  y: relu(X=fc.cast_fp32) -> (Out=y : f32[B,4])   forward\n"
      "  z: relu(X=fc) -> (Out=z : f16[B,4])   forward\n");
  ASSERT_TRUE(match.ok()) << match.status();
  EXPECT_THAT(NamesOf(*match),
              ElementsAre("x.cast_fp16 = x", "w.cast_fp16 = w", "fc = fc",
                          "fc.cast_fp32 = fc", "y = y"));
  EXPECT_THAT(match->unmatched, ElementsAre("z"));
}

// What stands behind the seed is scaled, what is made again in backward not.
TEST(MatchValues, GradientsAreScaled) {
  const std::string ops = absl::StrCat(
      kForward,
      "  @n: element_count(X=y) -> (Out=@n : f32[])   loss-scale\n"
      "  loss: mean(X=y) -> (Out=loss : f32[])   forward\n"
      "  loss.grad: gradient_seed(LossScaling=@loss_scaling, Count=@n, "
      "LargestCount=@largest_count, Loss=loss) -> (Out=loss.grad : f32[])   "
      "loss-scale\n"
      "  y.grad: broadcast_like(X=loss.grad, Like=y) -> (Out=y.grad : "
      "f32[B,4])   backward\n"
      "  again: relu(X=fc) -> (Out=again : f32[B,4])   backward\n");
  const auto match = Match(ops, ops);
  ASSERT_TRUE(match.ok()) << match.status();
  std::vector<std::string> scaled;
  for (const MatchedValue& value : match->values) {
    if (value.scaler == 0) scaled.push_back(value.name);
    EXPECT_EQ(match->references[value.reference].scaler, value.scaler);
  }
  EXPECT_THAT(scaled, ElementsAre("y.grad"));
}

// The gradients of fc by way of its copy are a part of its gradient.
TEST(MatchValues, AGradientOfOneCopyAmongSeveralIsNotTheValues) {
  const std::string reference = absl::StrCat(
      kForward,
      "  a: relu(X=y) -> (Out=fc.grad.1 : f32[B,4])   backward\n"
      "  b: relu(X=y) -> (Out=fc.grad.2 : f32[B,4])   backward\n"
      "  fc.grad: sum(X=[fc.grad.1, fc.grad.2]) -> (Out=fc.grad : f32[B,4])   "
      "backward\n");
  const std::string compared = absl::StrCat(
      kForward,
      "  a: relu(X=y) -> (Out=fc.cast_fp16.grad : f32[B,4])   backward\n"
      "  c: relu(X=fc.cast_fp16.grad) -> (Out=fc.grad.1 : f32[B,4])   "
      "backward\n"
      "  b: relu(X=y) -> (Out=fc.grad.2 : f32[B,4])   backward\n"
      "  fc.grad: sum(X=[fc.grad.1, fc.grad.2]) -> (Out=fc.grad : f32[B,4])   "
      "backward\n");
  const auto match = Match(reference, compared);
  ASSERT_TRUE(match.ok()) << match.status();
  // fc.grad.1 is another op's there.
  EXPECT_THAT(NamesOf(*match),
              ElementsAre("fc = fc", "y = y", "fc.grad.2 = fc.grad.2",
                          "fc.grad = fc.grad"));
  EXPECT_THAT(match->unmatched, ElementsAre("fc.cast_fp16.grad", "fc.grad.1"));
}

TEST(MatchValues, OtherModelsAreRefusedWithTheName) {
  const auto other_op = MatchValues(
      *ProgramOf(kForward),
      *ProgramOf("  q: relu(X=x) -> (Out=q : f32[B,4])   forward\n"), "train");
  EXPECT_EQ(ExitCodeOf(other_op.status()), ExitCode::kDiffer);
  EXPECT_THAT(other_op.status().message(), HasSubstr("no value"));

  const auto other_feed =
      MatchValues(*ProgramOf(kForward),
                  *ProgramOf("  q: relu(X=x) -> (Out=q : f32[B,3])   forward\n",
                             "f32[B,3]"),
                  "train");
  EXPECT_EQ(ExitCodeOf(other_feed.status()), ExitCode::kDiffer);
  EXPECT_THAT(other_feed.status().message(),
              HasSubstr("feed x: f32[B,4] in the reference, f32[B,3] in the"));

  const auto other_dims = Match(
      kForward,
      "  y: matmul(X=x, Y=x) -> (Out=y : f32[B,B]) {trans_y=true}   forward\n");
  EXPECT_EQ(ExitCodeOf(other_dims.status()), ExitCode::kDiffer);
  EXPECT_THAT(other_dims.status().message(), HasSubstr("y: f32[B,4] in"));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
