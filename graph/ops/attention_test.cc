#include "graph/ops/op_testing.h"
#include "graph/schema/op_registry.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;

Call Attention(std::vector<std::pair<std::string, AttrValue>> attrs = {}) {
  return {"scaled_dot_product_attention",
          {{"Q", "T[B,8,4,16]"}, {"K", "T[B,6,4,16]"}, {"V", "T[B,6,4,12]"}},
          attrs};
}
Call With(const std::string& slot, const std::string& type) {
  Call call = Attention();
  for (auto& in : call.in) {
    if (in.first == slot) in.second = type;
  }
  if (slot == "Mask") call.in.emplace_back(slot, type);
  return call;
}

TEST(Attention, OutputDims) {
  EXPECT_EQ(Infer(Attention()), "Out=f32[B,8,4,12]; LogSumExp=f32[B,4,8]");
  for (const char* mask :
       {"f32[B,4,8,6]", "bool[1,1,8,6]", "f16[B,1,1,6]", "bool[1,1,1,1]"}) {
    EXPECT_EQ(Infer(With("Mask", mask)),
              "Out=f32[B,8,4,12]; LogSumExp=f32[B,4,8]");
  }
  Call shared = Attention();
  shared.in[1].second = "T[B,6,2,16]";
  shared.in[2].second = "T[B,6,2,12]";
  EXPECT_EQ(Infer(shared), "Out=f32[B,8,4,12]; LogSumExp=f32[B,4,8]");
}

TEST(Attention, Errors) {
  EXPECT_THAT(Infer(With("K", "T[B,6,4,8]")),
              HasSubstr("slot K: expected [16] as dim 3, that of Q"));
  EXPECT_THAT(Infer(With("V", "T[B,5,4,12]")),
              HasSubstr("slot V: expected [6] as dim 1, that of K"));
  EXPECT_THAT(Infer(With("Q", "T[B,8,64]")),
              HasSubstr("slot Q: expected [B, T, H, D]"));
  EXPECT_THAT(
      Infer(With("Mask", "f32[8,6]")),
      HasSubstr("slot Mask: expected [B or 1, H or 1, T or 1, S or 1]"));
  EXPECT_THAT(Infer(With("Mask", "f32[B,1,6,8]")),
              HasSubstr("slot Mask: expected [B,4,8,6] with any of them 1"));
  Call three = Attention();
  three.in[1].second = "T[B,6,3,16]";
  three.in[2].second = "T[B,6,3,12]";
  EXPECT_THAT(Infer(three), HasSubstr("slot K: expected as many heads as Q"));
  EXPECT_THAT(Infer(Attention({{"dropout_prob", 1.0}})),
              HasSubstr("attribute dropout_prob: expected less than 1"));
  EXPECT_THAT(Infer(Attention({{"scale", -1.0}})),
              HasSubstr("attribute scale: expected a finite number >= 0"));
}

// The mask is drawn again from the same numbers.
TEST(Attention, Gradient) {
  EXPECT_EQ(
      GradientInAllTypes(
          Attention({{"causal", true}, {"dropout_prob", 0.1}, {"stream", 7}})),
      "scaled_dot_product_attention_grad(Q=Q, K=K, V=V, Out=op.Out, "
      "LogSumExp=op.LogSumExp, OutGrad=dOut, Seed=@seed, Step=@attempted, "
      "FirstSample=@first_sample) {causal=true dropout_prob=0.1 stream=7} -> "
      "Q.grad : f16[B,8,4,16], K.grad : f16[B,6,4,16], V.grad : "
      "f16[B,6,4,12]\n"
      "Q <- Q.grad\nK <- K.grad\nV <- V.grad\n");
}

TEST(Attention, DropsNothingAtTestTime) {
  EXPECT_EQ(Ops().Find("scaled_dot_product_attention")->to_test(),
            "scaled_dot_product_attention_infer");
}

}  // namespace
}  // namespace ops
}  // namespace halftone
