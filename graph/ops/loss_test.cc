#include "graph/ops/op_testing.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;

Call CrossEntropy(std::string logits, std::string label,
                  std::vector<std::pair<std::string, AttrValue>> attrs = {}) {
  return {"softmax_with_cross_entropy",
          {{"Logits", logits}, {"Label", label}},
          attrs};
}

TEST(CrossEntropy, LossHasTheDimsOfLabel) {
  EXPECT_EQ(Infer(CrossEntropy("f16[B,10]", "i64[B]")), "Loss=f32[B]");
  EXPECT_EQ(Infer(CrossEntropy("f16[B,10]", "i64[B,1]")), "Loss=f32[B,1]");
  EXPECT_EQ(Infer(CrossEntropy("f32[B,S,10]", "i64[B,S]", {{"axis", 2}})),
            "Loss=f32[B,S]");
  EXPECT_EQ(Infer(CrossEntropy("f16[B,5,S,S]", "i64[B,1,S,S]", {{"axis", 1}})),
            "Loss=f32[B,1,S,S]");
  EXPECT_EQ(Infer(CrossEntropy("f16[B,5,S]", "f32[B,5,S]",
                               {{"axis", 1}, {"soft_label", true}})),
            "Loss=f32[B,1,S]");
}

TEST(CrossEntropy, Errors) {
  EXPECT_EQ(Infer(CrossEntropy("f32[B,10]", "i64[S]")),
            "op (softmax_with_cross_entropy): slot Label: expected dims [B] "
            "or [B,1], one label per row of Logits, f32[B,10], found i64[S]; "
            "reshape it");
  EXPECT_THAT(
      Infer(CrossEntropy("f32[B,10]", "i32[B]")),
      HasSubstr("slot Label: expected i64, f32, f16, bf16, found i32[B]"));
  EXPECT_THAT(Infer(CrossEntropy("f32[B,10]", "i64[B]", {{"axis", 0}})),
              HasSubstr("slot Label: expected dims [10] or [1,10]"));
  EXPECT_EQ(Infer(CrossEntropy("f32[B,10]", "i64[B]", {{"soft_label", true}})),
            "op (softmax_with_cross_entropy): slot Label: expected "
            "probabilities, since soft_label is true, found i64[B]; set "
            "soft_label to false");
  EXPECT_EQ(Infer(CrossEntropy("f32[B,10]", "f32[B,10]")),
            "op (softmax_with_cross_entropy): slot Label: expected classes, "
            "since soft_label is false, found f32[B,10]; cast it to i64");
  EXPECT_THAT(Infer(CrossEntropy("f32[]", "i64[]")),
              HasSubstr("slot Logits: expected [..., C] (rank at least 1)"));
}

TEST(CrossEntropy, Gradient) {
  EXPECT_EQ(GradientInAllTypes(
                CrossEntropy("T[B,10]", "i64[B]", {{"ignore_index", 255}})),
            "softmax_with_cross_entropy_grad(Logits=Logits, Label=Label, "
            "LossGrad=dLoss) {ignore_index=255} -> Logits.grad : f16[B,10]\n"
            "Logits <- Logits.grad\n");
}

TEST(CrossEntropyGrad, ChecksLossGrad) {
  EXPECT_EQ(Infer({"softmax_with_cross_entropy_grad",
                   {{"Logits", "f16[B,10]"},
                    {"Label", "i64[B]"},
                    {"LossGrad", "f32[B,1]"}}}),
            "op (softmax_with_cross_entropy_grad): slot LossGrad: expected "
            "dims [B] (those of the loss), found f32[B,1]; change its dims or "
            "those of the slots named");
}

TEST(Mean, IsAScalar) {
  EXPECT_EQ(Infer({"mean", {{"X", "f32[B,4]"}}}), "Out=f32[]");
  EXPECT_EQ(GradientInAllTypes({"mean", {{"X", "T[B,4]"}}}),
            "broadcast_like(X=dOut, Like=X) {mean=true} -> X.grad : "
            "f16[B,4]\nX <- X.grad\n");
  Call wide = {"mean", {{"X", "f16[B,4]"}}};
  wide.bind = {{"TOut", "f32"}};
  EXPECT_EQ(Infer(wide), "Out=f32[]");
  EXPECT_EQ(Gradient(wide),
            "broadcast_like(X=dOut, Like=X) {mean=true} -> X.grad : "
            "f16[B,4]\nX <- X.grad\n");
}

Call Reduce(std::string x,
            std::vector<std::pair<std::string, AttrValue>> attrs = {},
            std::string op = "reduce_sum") {
  return {op, {{"X", x}}, attrs};
}

TEST(Reduce, Dims) {
  EXPECT_EQ(Infer(Reduce("f32[B,S,4]")), "Out=f32[]");
  EXPECT_EQ(Infer(Reduce("f32[B,S,4]", {{"dim", Ints{-1, 0}}})), "Out=f32[S]");
  EXPECT_EQ(Infer(Reduce("f32[B,S,4]", {{"dim", Ints{1}}, {"keep_dim", true}})),
            "Out=f32[B,1,4]");
  EXPECT_EQ(
      Infer(Reduce("f32[B,S,4]", {{"dim", Ints{1}}, {"reduce_all", true}})),
      "Out=f32[]");
  EXPECT_EQ(Infer(Reduce("f32[B,4]", {{"keep_dim", true}}, "reduce_mean")),
            "Out=f32[1,1]");
  EXPECT_EQ(Infer(Reduce("f32[]")), "Out=f32[]");
}

TEST(Reduce, Errors) {
  EXPECT_EQ(Infer(Reduce("f32[B,4]", {{"dim", Ints{2}}})),
            "op (reduce_sum): attribute dim: expected different axes from -2 "
            "to 1, found [2]");
  EXPECT_EQ(Infer(Reduce("f32[B,4]", {{"dim", Ints{1, -1}}}, "reduce_mean")),
            "op (reduce_mean): attribute dim: expected different axes from "
            "-2 to 1, found [1, -1]");
  EXPECT_EQ(Infer(Reduce("f32[]", {{"dim", Ints{0}}})),
            "op (reduce_sum): attribute dim: expected [] for a scalar, found "
            "[0]");
}

TEST(Reduce, Gradients) {
  EXPECT_EQ(GradientInAllTypes(Reduce("T[B,S,4]")),
            "broadcast_like(X=dOut, Like=X) -> X.grad : f16[B,S,4]\n"
            "X <- X.grad\n");
  EXPECT_EQ(
      GradientInAllTypes(Reduce(
          "T[B,S,4]", {{"dim", Ints{-1}}, {"keep_dim", true}}, "reduce_mean")),
      "broadcast_like(X=dOut, Like=X) {dim=[-1] keep_dim=true "
      "mean=true} -> X.grad : f16[B,S,4]\nX <- X.grad\n");
  EXPECT_EQ(GradientInAllTypes(
                Reduce("T[B,S]", {{"dim", Ints{0}}, {"reduce_all", true}})),
            "broadcast_like(X=dOut, Like=X) {dim=[]} -> X.grad : f16[B,S]\n"
            "X <- X.grad\n");
}

Call BroadcastLike(std::string x, std::string like, Ints dim, bool mean) {
  return {"broadcast_like",
          {{"X", x}, {"Like", like}},
          {{"dim", dim}, {"mean", mean}}};
}

TEST(BroadcastLike, TakesTheDimsOfLike) {
  EXPECT_EQ(Infer(BroadcastLike("f32[B]", "u8[B,S]", {1}, false)),
            "Out=f32[B,S]");
  EXPECT_EQ(Infer(BroadcastLike("f32[B]", "f16[B,S]", {0}, false)),
            "op (broadcast_like): slot X: expected dims [S] (those of Like, "
            "f16[B,S], reduced over dim), found f32[B]; change its dims or "
            "those of the slots named");
}

TEST(BroadcastLike, GradientIsTheReduction) {
  EXPECT_EQ(GradientInAllTypes(BroadcastLike("T[B]", "i64[B,S]", {1}, false)),
            "reduce_sum(X=dOut) {dim=[1]} -> X.grad : f16[B]\nX <- X.grad\n");
  EXPECT_EQ(GradientInAllTypes(BroadcastLike("T[B]", "i64[B,S]", {1}, true)),
            "reduce_mean(X=dOut) {dim=[1]} -> X.grad : f16[B]\nX <- X.grad\n");
}

TEST(CorrectCount, CountsRows) {
  const auto infer = [](std::string x, std::string label, int64_t k) {
    return Infer({"correct_count", {{"X", x}, {"Label", label}}, {{"k", k}}});
  };
  EXPECT_EQ(infer("f16[B,10]", "i64[B]", 1), "Out=i64[]");
  EXPECT_EQ(infer("f32[B,10]", "i64[B,1]", 5), "Out=i64[]");
  EXPECT_EQ(infer("f32[B,10]", "i64[B]", 11),
            "op (correct_count): attribute k: expected 1 to [10], the last "
            "dim of X, found 11");
  EXPECT_THAT(infer("f32[B,10]", "i64[4]", 1), HasSubstr("slot Label"));
}

TEST(TopK, KeepsTheRows) {
  EXPECT_EQ(Infer({"top_k", {{"X", "f16[B,S,10]"}}, {{"k", 3}}}),
            "Out=f16[B,S,3]; Indices=i64[B,S,3]");
  EXPECT_THAT(Infer({"top_k", {{"X", "f16[B,10]"}}, {{"k", 0}}}),
              HasSubstr("attribute k: expected 1 to [10]"));
}

}  // namespace
}  // namespace ops
}  // namespace halftone
