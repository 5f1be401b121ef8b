// What is a pattern's body and what is not; who takes which role.
#include "graph/fusions/fusion_pattern.h"

#include <memory>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/ir/program.h"
#include "graph/text/text.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

// The fusion of the program's one entry, whose body is `feeds` and `ops`.
std::unique_ptr<Program> Fused(const std::string& pattern,
                               const std::string& feeds,
                               const std::string& outs,
                               const std::string& ops) {
  std::string names, lines;
  for (size_t i = 0; i < feeds.size();) {
    const size_t end = feeds.find('\n', i);
    const std::string feed = feeds.substr(i, end - i);
    absl::StrAppend(&names, names.empty() ? "" : ", ",
                    feed.substr(0, feed.find(' ')));
    absl::StrAppend(&lines, "feed ", feed, "\n");
    i = end + 1;
  }
  auto program = Parse(
      absl::StrCat("program \"p\"\nentry e {\n", lines, "f.fused: fusion(X=[",
                   names, "]) -> (Out=[", outs, "]) {pattern=\"", pattern,
                   "\"}   backward body {\n", lines, ops, "}\n}\n"),
      "p");
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *std::move(program) : nullptr;
}

// Whether the body is the pattern's.
bool Matches(const std::string& pattern, const std::string& feeds,
             const std::string& outs, const std::string& ops) {
  const auto program = Fused(pattern, feeds, outs, ops);
  if (program == nullptr) return false;
  const Block& block = program->entries()[0]->block();
  const Block& body = *block.op(*block.ops().begin()).body;
  return !FindFusionPattern(pattern)->MatchBody(body).ops().empty();
}

TEST(FusionPattern, NormElementwiseBroadcastsNothing) {
  const auto matches = [](const std::string& other) {
    return Matches(
        "norm_elementwise",
        absl::StrCat("x : f32[2,3,4,5]\ns : f32[3]\nb : f32[3]\nm : f32[3]\n"
                     "v : f32[3]\nz : ",
                     other, "\n"),
        "y : f32[2,3,4,5]",
        "n: scale_bias(X=x, Scale=s, Bias=b, Mean=m, Variance=v) -> (Y=n : "
        "f32[2,3,4,5])   backward\n"
        "y: elementwise_add(X=n, Y=z) -> (Out=y : f32[2,3,4,5])   backward\n"
        "return y\n");
  };
  EXPECT_TRUE(matches("f32[2,3,4,5]"));
  EXPECT_FALSE(matches("f32[5]"));
}

TEST(FusionPattern, NormElementwiseBitsAreOfItsRelu) {
  const auto matches = [](const std::string& pattern, const std::string& of) {
    const std::string image = "f32[2,8,4,5] @channels_last";
    return Matches(
        pattern,
        absl::StrCat("x : ", image, "\ns : f32[8]\nb : f32[8]\nm : f32[8]\n",
                     "v : f32[8]\n"),
        absl::StrCat("y : ", image, ", z : u8[2,1,4,5] @channels_last"),
        absl::StrCat("n: scale_bias(X=x, Scale=s, Bias=b, Mean=m, Variance=v) "
                     "-> (Y=n : ",
                     image, ")   backward\ny: relu(X=n) -> (Out=y : ", image,
                     ")   backward\nz: relu_bits(Out=", of,
                     ") -> (Bits=z : u8[2,1,4,5] @channels_last)   backward\n",
                     "return y, z\n"));
  };
  EXPECT_TRUE(matches("norm_elementwise_bits", "y"));
  EXPECT_FALSE(matches("norm_elementwise_bits", "n"));
  EXPECT_FALSE(matches("norm_elementwise", "y"));
}

TEST(FusionPattern, ReluGradBiasSumsOverAllButChannels) {
  const auto matches = [](const std::string& axes) {
    const std::string image = "f32[2,3,3,3] @channels_last";
    return Matches(
        "relu_grad_bias", absl::StrCat("r : ", image, "\na : ", image, "\n"),
        "s : f32[3]",
        absl::StrCat("g: relu_grad(Out=r, OutGrad=a) -> (XGrad=g : ", image,
                     ")   backward\ns: reduce_sum(X=g) -> (Out=s : f32[3]) "
                     "{dim=",
                     axes, "}   backward\nreturn s\n"));
  };
  EXPECT_TRUE(matches("[0, 2, 3]"));
  EXPECT_FALSE(matches("[0, 1, 3]"));
}

TEST(FusionPattern, ReluGradBiasAddsTwoGradients) {
  const auto matches = [](const std::string& more, const std::string& parts) {
    const std::string image = "f32[2,3,3,3] @channels_last";
    std::string feeds;
    for (const char* feed : {"r", "a", "b"}) {
      absl::StrAppend(&feeds, feed, " : ", image, "\n");
    }
    if (!more.empty()) absl::StrAppend(&feeds, more, " : ", image, "\n");
    return Matches(
        "relu_grad_bias", feeds, "s : f32[3]",
        absl::StrCat("t: sum(X=[", parts, "]) -> (Out=t : ", image,
                     ")   backward\ng: relu_grad(Out=r, OutGrad=t) -> (XGrad=g "
                     ": ",
                     image,
                     ")   backward\ns: reduce_sum(X=g) -> (Out=s : f32[3]) "
                     "{dim=[0, 2, 3]}   backward\nreturn s\n"));
  };
  EXPECT_TRUE(matches("", "a, b"));
  EXPECT_FALSE(matches("c", "a, b, c"));
}

TEST(FusionPattern, KnowsWhoTakesARole) {
  const std::string image = "f32[2,3,3,3] @channels_last";
  const auto program = Fused(
      "relu_grad_norm",
      absl::StrCat("x : ", image, "\nz : ", image, "\nr : ", image,
                   "\na : ", image, "\nb : ", image, "\nm : f32[3]\n"),
      "p : f32[3], q : f32[3]",
      absl::StrCat(
          "t: sum(X=[a, b]) -> (Out=t : ", image, ")   backward\n",
          "g: relu_grad(Out=r, OutGrad=t) -> (XGrad=g : ", image,
          ")   backward\n",
          "one: bn_grad_reduce(X=x, YGrad=g, BatchMean=m, BatchVariance=m) -> "
          "(ScaleGrad=p : f32[3], BiasGrad=bp : f32[3])   backward\n"
          "two: bn_grad_reduce(X=z, YGrad=g, BatchMean=m, BatchVariance=m) -> "
          "(ScaleGrad=q : f32[3], BiasGrad=bq : f32[3])   backward\n"
          "return p, q\n"));
  ASSERT_NE(program, nullptr);
  const Block& block = program->entries()[0]->block();
  const Block& body = *block.op(*block.ops().begin()).body;
  const FusionPattern& pattern = *FindFusionPattern("relu_grad_norm");
  const FusionGroup group = pattern.MatchBody(body);
  ASSERT_EQ(group.ops().size(), 4u);
  EXPECT_EQ(group.Of("sums"), body.FindOp("two"));
  EXPECT_EQ(group.Of("other_sums"), body.FindOp("one"));
  EXPECT_EQ(group.Of("mask"), body.FindOp("g"));
  EXPECT_EQ(group.Of("parts"), body.FindOp("t"));
  EXPECT_EQ(pattern.KeyType(body, group).layout, Layout::kChannelsLast);
  // Another pattern's roles are not there.
  EXPECT_TRUE(
      FindFusionPattern("relu_grad_bias")->MatchBody(body).ops().empty());
}

// Of a block that lacks an op which every group has, none.
TEST(FusionPattern, KnowsWhatItEndsWithInABlock) {
  const auto program = Fused(
      "norm_elementwise",
      "x : f32[2,3,4,5]\ns : f32[3]\nb : f32[3]\nm : f32[3]\nv : f32[3]\n"
      "z : f32[2,3,4,5]\n",
      "y : f32[2,3,4,5]",
      "n: scale_bias(X=x, Scale=s, Bias=b, Mean=m, Variance=v) -> (Y=n : "
      "f32[2,3,4,5])   backward\n"
      "y: elementwise_add(X=n, Y=z) -> (Out=y : f32[2,3,4,5])   backward\n"
      "return y\n");
  ASSERT_NE(program, nullptr);
  const Block& block = program->entries()[0]->block();
  const Block& body = *block.op(*block.ops().begin()).body;
  const auto ends = [&body](const char* pattern) {
    std::set<std::string> names;
    for (const OpSchema* end : FindFusionPattern(pattern)->EndsIn(body)) {
      names.insert(end->name());
    }
    return names;
  };
  using ::testing::ElementsAre;
  using ::testing::IsEmpty;
  // Its relu and the addition may be absent, the norm may not.
  EXPECT_THAT(ends("norm_elementwise"),
              ElementsAre("elementwise_add", "scale_bias"));
  EXPECT_THAT(ends("elementwise_chain"), ElementsAre("elementwise_add"));
  EXPECT_THAT(ends("norm_elementwise_bits"), IsEmpty());
  EXPECT_THAT(ends("relu_grad_bias"), IsEmpty());
}

TEST(FusionPattern, HasADistinctNameAndAFormula) {
  std::set<std::string> names;
  for (const FusionPattern& pattern : FusionPatterns()) {
    EXPECT_TRUE(names.insert(pattern.name()).second) << pattern.name();
    EXPECT_FALSE(pattern.formula().empty()) << pattern.name();
    EXPECT_EQ(FindFusionPattern(pattern.name()), &pattern);
  }
  EXPECT_EQ(FindFusionPattern("nobody_has_this"), nullptr);
}

}  // namespace
}  // namespace halftone
