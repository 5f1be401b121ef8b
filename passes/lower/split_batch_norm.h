// split-batch-norm: sync_batch_norm and its gradient become local sums, one
// reduction each, and element-wise application; batch_norm and its gradient
// likewise, without reductions, where fusions of the target then move fewer
// bytes (weigh_batch_norm.h), which bn_finalize says.
//
//   before
//     bn1: sync_batch_norm(X=c, Scale=s, Bias=b, Mean=m, Variance=v) ->
//         (Y=y : f16[B,16,28,28], BatchMean=bn1.BatchMean, ...)
//     bn1.grad: sync_batch_norm_grad(X=c, YGrad=y.grad, Scale=s, ...) ->
//         (XGrad=c.grad, ScaleGrad=s.grad, BiasGrad=b.grad)
//   after
//     bn1.stats: channel_stats(X=c, Shift=m) -> (Sum=bn1.stats.Sum, ...)
//     bn1.stats.reduced: all_reduce(X=[bn1.stats.Sum, bn1.stats.SquaredSum,
//         bn1.stats.Count]) -> (Out=[..., bn1.BatchCount]) {of="statistics"}
//     bn1.finalize: bn_finalize(Sum=bn1.stats.Sum.reduced, ..., Shift=m) ->
//         (BatchMean=bn1.BatchMean, BatchVariance=bn1.BatchVariance)
//     bn1.apply: scale_bias(X=c, Scale=s, Bias=b, Mean=bn1.BatchMean,
//         Variance=bn1.BatchVariance) -> (Y=y : f16[B,16,28,28])
//     bn1.grad.sums: bn_grad_reduce(X=c, YGrad=y.grad, ...) ->
//         (ScaleGrad=s.grad : f32[16], BiasGrad=b.grad : f32[16])
//     bn1.grad.sums.reduced: all_reduce(X=[s.grad, b.grad]) -> (Out=[...])
//         {of="statistics"}
//     bn1.grad.coefficients: bn_grad_coefficients(Scale=s, ...,
//         Count=bn1.BatchCount) -> (A=..., B=..., C0=...)
//     bn1.grad.apply: bn_grad_apply(X=c, YGrad=y.grad, A=..., B=..., C0=...) ->
//         (XGrad=c.grad : f16[B,16,28,28])
//
// Each part has the name of the whole among its origins. The local sums of the
// gradient are the scale and bias gradients, which the gradient reduction sums
// like any other. Sums are taken about the old running mean: E[x^2] - E[x]^2
// does not go negative where the mean is large.
//
// Where every reader of relu(batch_norm(x)) can make it again from x within a
// fusion, each gets scale_bias and relu of its own; clean-up shares what was
// not fused:
//
//   before
//     a: batch_norm(X=x, ...) -> (Y=a : f16[B,16,28,28] @channels_last, ...)
//     r: relu(X=a) -> (Out=r : ...)
//     c: conv2d(Input=r, Filter=w) -> (Output=c : ...)
//     w.grad: conv2d_grad_filter(Input=r, OutputGrad=c.grad) -> (...)
//   after
//     a.stats: channel_stats(X=x, Shift=m) -> (Sum=a.stats.Sum, ...)
//     a.finalize: bn_finalize(Sum=a.stats.Sum, ...) -> (...) {saves=125440}
//     a.apply: scale_bias(X=x, ...) -> (Y=a : ...)
//     r: relu(X=a) -> (Out=r : ...)
//     c: conv2d(Input=r, Filter=w) -> (Output=c : ...)
//     a.again: scale_bias(X=x, ...) -> (Y=a.again : ...)
//     r.again: relu(X=a.again) -> (Out=r.again : ...)
//     w.grad: conv2d_grad_filter(Input=r.again, OutputGrad=c.grad) -> (...)
#ifndef HALFTONE_PASSES_LOWER_SPLIT_BATCH_NORM_H_
#define HALFTONE_PASSES_LOWER_SPLIT_BATCH_NORM_H_

#include "passes/lower/patterns/pattern.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class SplitBatchNorm : public Pass {
 public:
  // `kernels` is borrowed.
  explicit SplitBatchNorm(const KernelSet& kernels,
                          bool strict_f32_slots = false)
      : patterns_{&kernels, strict_f32_slots} {}

  absl::string_view name() const override { return "split-batch-norm"; }
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  PatternSet patterns_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_SPLIT_BATCH_NORM_H_
