#include "kernels/common/norm_fusions.h"

#include <algorithm>
#include <iterator>

#include "graph/base/layout.h"
#include "kernels/fused_op.h"

namespace halftone {
namespace kernels {

NormAt::NormAt(const BoundOp& op)
    : x(ArgumentPosition(op, "X")),
      scale(ArgumentPosition(op, "Scale")),
      bias(ArgumentPosition(op, "Bias")),
      mean(ArgumentPosition(op, "Mean")),
      variance(ArgumentPosition(op, "Variance")),
      epsilon(static_cast<float>(op.Float("epsilon"))) {}

NormElementwiseAt::NormElementwiseAt(const BoundOp& fusion) {
  const FusedOp fused(fusion);
  relu = fused.Has("relu");
  add = fused.Has("add");
  const BoundOp norm = fused.Of("norm");
  norms.emplace_back(norm);
  if (fused.Has("other_norm")) {
    norms.emplace_back(fused.Of("other_norm"));
    y = norms[1].x;
  } else if (add) {
    const BoundOp sum = fused.Of("add");
    y = ArgumentPosition(sum, Reads(sum, "X", norm) ? "Y" : "X");
  }
  if (fused.pattern() == "norm_elementwise_bits") {
    out = ResultPosition(fused.Of("relu"), "Out");
    bits = ResultPosition(fused.Of("bits"), "Bits");
  }
}

NormSumsAt::NormSumsAt(const BoundOp& op)
    : x(ArgumentPosition(op, "X")),
      mean(ArgumentPosition(op, "BatchMean")),
      variance(ArgumentPosition(op, "BatchVariance")),
      scale_grad(ResultPosition(op, "ScaleGrad")),
      bias_grad(ResultPosition(op, "BiasGrad")),
      epsilon(static_cast<float>(op.Float("epsilon"))) {}

ReluGradSumsAt::ReluGradSumsAt(const BoundOp& fusion) {
  const FusedOp fused(fusion);
  const BoundOp mask = fused.Of("mask");
  bits = fused.pattern() == "relu_grad_norm_bits";
  relu = ArgumentPosition(mask, bits ? "Bits" : "Out");
  if (fused.pattern() == "recompute_relu_grad_norm") {
    recomputed.emplace(fused.Of("norm"));
  }
  g = ResultPosition(mask, "XGrad");
  a = ArgumentPosition(mask, "OutGrad");
  if (fused.Has("parts")) {
    const BoundOp sum = fused.Of("parts");
    a = ArgumentPosition(sum, "X", 0);
    b = ArgumentPosition(sum, "X", 1);
  }
  if (fused.pattern() == "relu_grad_bias") {
    bias = ResultPosition(fused.Of("bias"), "Out");
    return;
  }
  norms.emplace_back(fused.Of("sums"));
  if (fused.Has("other_sums")) norms.emplace_back(fused.Of("other_sums"));
}

NormMaxPoolAt::NormMaxPoolAt(const BoundOp& fusion)
    : norm(FusedOp(fusion).Of("norm")) {
  const BoundOp pool = FusedOp(fusion).Of("pool");
  shape = PoolShape::Of(pool);
  out = ResultPosition(pool, "Out");
  argmax = ResultPosition(pool, "Argmax");
}

PooledGradAt::PooledGradAt(const BoundOp& fusion) {
  const BoundOp pool = FusedOp(fusion).Of("pool");
  shape = PoolShape::Of(pool);
  grad = ArgumentPosition(pool, "OutGrad");
  argmax = ArgumentPosition(pool, "Argmax");
}

NormApplyAt::NormApplyAt(const BoundOp& op)
    : x(ArgumentPosition(op, "X")),
      y_grad(ArgumentPosition(op, "YGrad")),
      mean(ArgumentPosition(op, "Mean")),
      a(ArgumentPosition(op, "A")),
      b(ArgumentPosition(op, "B")),
      c0(ArgumentPosition(op, "C0")),
      x_grad(ResultPosition(op, "XGrad")) {}

NormGradApplyTwoAt::NormGradApplyTwoAt(const BoundOp& fusion)
    : norms{NormApplyAt(FusedOp(fusion).Of("apply")),
            NormApplyAt(FusedOp(fusion).Of("other"))} {}

bool SupportsNormElementwise(const BoundOp& fusion) {
  const NormElementwiseAt at(fusion);
  if (at.out < 0) return false;
  const TensorDesc& out = fusion.outputs()[at.out];
  const bool inner_channels =
      out.rank() == 2 || out.layout == Layout::kChannelsLast;
  return out.rank() >= 2 && (at.bits < 0 || inner_channels) &&
         std::all_of(at.norms.begin(), at.norms.end(),
                     [](const NormAt& norm) { return norm.x >= 0; });
}

bool SupportsReluGradSums(const BoundOp& fusion) {
  const ReluGradSumsAt at(fusion);
  return (at.relu >= 0 || at.recomputed.has_value()) && at.a >= 0 &&
         (at.b >= 0 || !FusedOp(fusion).Has("parts")) &&
         std::all_of(
             at.norms.begin(), at.norms.end(), [](const NormSumsAt& sums) {
               return sums.x >= 0 && sums.mean >= 0 && sums.variance >= 0;
             });
}

bool SupportsNormMaxPool(const BoundOp& fusion) {
  const NormMaxPoolAt at(fusion);
  return at.norm.x >= 0 && at.out >= 0 && at.argmax >= 0;
}

bool SupportsMaxPoolGradNorm(const BoundOp& fusion) {
  const PooledGradAt pool(fusion);
  const NormSumsAt sums(FusedOp(fusion).Of("norm"));
  return pool.grad >= 0 && pool.argmax >= 0 && sums.x >= 0 && sums.mean >= 0 &&
         sums.variance >= 0;
}

namespace {

// All but YGrad.
bool ReadsArguments(const NormApplyAt& norm) {
  return norm.x >= 0 && norm.mean >= 0 && norm.a >= 0 && norm.b >= 0 &&
         norm.c0 >= 0;
}

}  // namespace

bool SupportsNormGradApplyTwo(const BoundOp& fusion) {
  const NormGradApplyTwoAt at(fusion);
  return std::all_of(
      std::begin(at.norms), std::end(at.norms), [](const NormApplyAt& norm) {
        return ReadsArguments(norm) && norm.y_grad >= 0 && norm.x_grad >= 0;
      });
}

bool SupportsMaxPoolGradApply(const BoundOp& fusion) {
  const PooledGradAt pool(fusion);
  return pool.grad >= 0 && pool.argmax >= 0 &&
         ReadsArguments(NormApplyAt(FusedOp(fusion).Of("norm")));
}

}  // namespace kernels
}  // namespace halftone
