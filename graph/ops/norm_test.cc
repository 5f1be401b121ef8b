#include "absl/strings/str_cat.h"
#include "graph/ops/op_testing.h"
#include "graph/schema/grad_context.h"

namespace halftone {
namespace ops {
namespace {

using testing::HasSubstr;

Call Norm(std::string op, std::string x, std::string c = "f32[8]",
          std::vector<std::pair<std::string, AttrValue>> attrs = {}) {
  return {op,
          {{"X", x}, {"Scale", c}, {"Bias", c}, {"Mean", c}, {"Variance", c}},
          attrs};
}

TEST(BatchNorm, Outputs) {
  for (const char* op : {"batch_norm", "sync_batch_norm"}) {
    EXPECT_EQ(Infer(Norm(op, "f16[B,8,S,S]")),
              "Y=f16[B,8,S,S]; BatchMean=f32[8]; BatchVariance=f32[8]; "
              "BatchCount=f32[]");
    EXPECT_THAT(Infer(Norm(op, "f16[B,8]")), HasSubstr("Y=f16[B,8];"));
  }
  EXPECT_THAT(Infer(Norm("batch_norm", "f32[B,8,4,4]@channels_last")),
              HasSubstr("Y=f32[B,8,4,4] @channels_last; "));
  EXPECT_EQ(Infer(Norm("scale_bias", "bf16[B,8,4,4]@channels_last")),
            "Y=bf16[B,8,4,4] @channels_last");
}

TEST(BatchNorm, Errors) {
  EXPECT_EQ(Infer(Norm("batch_norm", "f32[B,4,S,S]")),
            "op (batch_norm): slot Scale: expected dims [4] (C of X, "
            "f32[B,4,S,S]), found f32[8]; change its dims or those of the "
            "slots named");
  EXPECT_THAT(Infer(Norm("scale_bias", "f32[8]")),
              HasSubstr("slot X: expected [N, C, ...] (rank at least 2), "
                        "found f32[8]"));
  EXPECT_THAT(Infer(Norm("batch_norm", "f16[B,8]", "f16[8]")),
              HasSubstr("slot Scale: expected f32, found f16[8]; cast it"));
  EXPECT_EQ(
      Infer(Norm("batch_norm", "f32[B,8]", "f32[8]", {{"momentum", 1.5}})),
      "op (batch_norm): attribute momentum: expected a number from 0 "
      "to 1, found 1.5");
  EXPECT_EQ(
      Infer(Norm("batch_norm", "f32[B,8]", "f32[8]", {{"epsilon", -1.0}})),
      "op (batch_norm): attribute epsilon: expected a finite number >= "
      "0, found -1");
}

TEST(BatchNorm, Gradient) {
  Call call = Norm("batch_norm", "T[B,8,4,4]", "f32[8]", {{"epsilon", 0.001}});
  call.wanted = {"X", "Scale", "Bias"};
  EXPECT_EQ(
      GradientInAllTypes(call),
      "batch_norm_grad(X=X, YGrad=dY, Scale=Scale, BatchMean=op.BatchMean, "
      "BatchVariance=op.BatchVariance) {epsilon=0.001} -> X.grad : "
      "f16[B,8,4,4], Scale.grad : f32[8], Bias.grad : f32[8]\n"
      "X <- X.grad\nScale <- Scale.grad\nBias <- Bias.grad\n");
  call =
      Norm("sync_batch_norm", "T[B,8]", "f32[8]", {{"group_size", int64_t{2}}});
  call.wanted = {"Bias"};
  EXPECT_EQ(
      GradientInAllTypes(call),
      "sync_batch_norm_grad(X=X, YGrad=dY, Scale=Scale, "
      "BatchMean=op.BatchMean, BatchVariance=op.BatchVariance, "
      "BatchCount=op.BatchCount) {group_size=2} -> op.grad.XGrad : f16[B,8], "
      "op.grad.ScaleGrad : f32[8], Bias.grad : f32[8]\n"
      "Bias <- Bias.grad\n");
}

// A loss that reads a batch statistic is refused.
TEST(BatchNorm, NoGradientThroughStatistics) {
  Program program;
  Block& block = program.AddEntry("train").block();
  TensorType image{DType::kF32, Layout::kRowMajor, {Dim(4), Dim(8)}};
  TensorType vector{DType::kF32, Layout::kRowMajor, {Dim(8)}};
  OpBuilder builder(&block, "batch_norm");
  builder.Name("bn1").In("X", block.AddFeed("x", image));
  for (const char* slot : {"Scale", "Bias", "Mean", "Variance"}) {
    builder.In(slot, block.AddFeed(slot, vector));
  }
  const OpId op = builder.Build().value();
  GradContext context(
      &block, op,
      {ValueId(), block.AddFeed("dMean", vector), ValueId(), ValueId()},
      GradContext::Wanted(5, true));
  EXPECT_EQ(block.op(op).schema->RunGrad(context).message(),
            "bn1 (batch_norm): slot BatchMean: expected no gradient, found "
            "one; the loss must not depend on batch statistics but through Y");
}

TEST(BatchNormParts, OnImages) {
  EXPECT_EQ(Infer({"channel_stats", {{"X", "f16[B,8,4,4]"}}}),
            "Mean=f32[8]; Variance=f32[8]; Count=f32[]");
  EXPECT_EQ(Infer({"bn_grad_reduce",
                   {{"X", "f16[B,8,4,4]"},
                    {"YGrad", "f16[B,8,4,4]"},
                    {"BatchMean", "f32[8]"},
                    {"BatchVariance", "f32[8]"}}}),
            "ScaleGrad=f32[8]; BiasGrad=f32[8]");
  Call apply = {"bn_grad_apply",
                {{"X", "f16[B,8,4,4]@channels_last"},
                 {"YGrad", "f16[B,8,4,4]@channels_last"},
                 {"Mean", "f32[8]"},
                 {"A", "f32[8]"},
                 {"B", "f32[8]"},
                 {"C0", "f32[8]"}}};
  EXPECT_EQ(Infer(apply), "XGrad=f16[B,8,4,4] @channels_last");
  apply.in[1].second = "f16[B,8,4,5]";
  EXPECT_THAT(Infer(apply), HasSubstr("slot YGrad: expected dims [B,8,4,4] "
                                      "(those of X), found f16[B,8,4,5]"));
}

Call Combine(std::string variance, std::string count) {
  Call call = {"combine_stats",
               {{"Mean", "f32[8]"}, {"Variance", variance}, {"Count", count}}};
  call.lists = {{"Mean", 1}, {"Variance", 1}, {"Count", 1}};
  return call;
}

TEST(BatchNormParts, OnVectors) {
  Call combine = Combine("f32[8]", "f32[]");
  EXPECT_EQ(Infer(combine), "Mean=f32[8]; Variance=f32[8]; Count=f32[]");
  combine.lists.pop_back();
  EXPECT_EQ(Infer(combine),
            "op (combine_stats): slot Count: expected 1 outputs, one per value "
            "of Mean, found 0; name each output");
  EXPECT_EQ(Infer({"bn_grad_coefficients",
                   {{"Scale", "f32[8]"},
                    {"BatchVariance", "f32[8]"},
                    {"ScaleGradSum", "f32[8]"},
                    {"BiasGradSum", "f32[8]"},
                    {"Count", "f32[]"}}}),
            "A=f32[8]; B=f32[8]; C0=f32[8]");
}

TEST(BatchNormParts, VectorErrors) {
  Call call = Combine("f32[7]", "f32[]");
  EXPECT_EQ(Infer(call),
            "op (combine_stats): slot Variance[0]: expected [C], as in Mean, "
            "found f32[7]");
  call.in[1].second = "f32[8]";
  call.in[2].second = "f32[1]";
  EXPECT_EQ(Infer(call),
            "op (combine_stats): slot Count[0]: expected a scalar, dims [], "
            "found f32[1]");
  call.in[2].second = "f32[]";
  call.attrs = {{"of", std::string("gradient")}};
  EXPECT_THAT(Infer(call), HasSubstr("attribute of: expected"));
  call.attrs = {{"group_size", int64_t{-1}}};
  EXPECT_THAT(Infer(call), HasSubstr("attribute group_size: expected 0 or "));
  call.attrs = {{"replicas", int64_t{0}}};
  EXPECT_THAT(Infer(call), HasSubstr("attribute replicas: expected 1 rank "));
}

TEST(RunningStats, Outputs) {
  Call call = {"running_stats",
               {{"OldMean", "f32[8]"},
                {"OldVariance", "f32[8]"},
                {"BatchMean", "f32[8]"},
                {"BatchVariance", "f32[8]"},
                {"FoundInf", "bool[]"}}};
  EXPECT_EQ(Infer(call), "Mean=f32[8]; Variance=f32[8]");
  call.in[3].second = "f32[4]";
  EXPECT_THAT(Infer(call), HasSubstr("slot BatchVariance: expected dims [8]"));
}

}  // namespace
}  // namespace ops
}  // namespace halftone
