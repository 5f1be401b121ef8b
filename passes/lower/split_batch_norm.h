// split-batch-norm: sync_batch_norm and its gradient become local statistics
// and sums, one collective each, and element-wise application; batch_norm and
// its gradient likewise, without collectives, where fusions of the target then
// move fewer bytes (weigh_batch_norm.h), which channel_stats says.
//
//   before
//     bn1: sync_batch_norm(X=c, Scale=s, Bias=b, Mean=m, Variance=v) ->
//         (Y=y : f16[B,16,28,28], BatchMean=bn1.BatchMean, ...)
//     bn1.grad: sync_batch_norm_grad(X=c, YGrad=y.grad, Scale=s, ...) ->
//         (XGrad=c.grad, ScaleGrad=s.grad, BiasGrad=b.grad)
//   after
//     bn1.stats: channel_stats(X=c) -> (Mean=bn1.stats.Mean, ...)
//     bn1.stats.combined: combine_stats(Mean=[bn1.stats.Mean],
//         Variance=[bn1.stats.Variance], Count=[bn1.stats.Count]) ->
//         (Mean=[bn1.BatchMean], ..., Count=[bn1.BatchCount])
//     bn1.apply: scale_bias(X=c, Scale=s, Bias=b, Mean=bn1.BatchMean,
//         Variance=bn1.BatchVariance) -> (Y=y : f16[B,16,28,28])
//     bn1.grad.sums: bn_grad_reduce(X=c, YGrad=y.grad, ...) ->
//         (ScaleGrad=s.grad : f32[16], BiasGrad=b.grad : f32[16])
//     bn1.grad.sums.reduced: all_reduce(X=[s.grad, b.grad]) -> (Out=[...])
//         {of="statistics"}
//     bn1.grad.coefficients: bn_grad_coefficients(Scale=s, ...,
//         Count=bn1.BatchCount) -> (A=..., B=..., C0=...)
//     bn1.grad.apply: bn_grad_apply(X=c, YGrad=y.grad, Mean=bn1.BatchMean,
//         A=..., B=..., C0=...) -> (XGrad=c.grad : f16[B,16,28,28])
//
// Each part has the name of the whole among its origins. The local sums of the
// gradient are the scale and bias gradients, which the gradient reduction sums
// like any other. Statistics are each rank's own, about its own mean, and
// combined: sums about a number that all ranks have would cancel where that is
// far from the mean.
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
//     a.stats: channel_stats(X=x) -> (Mean=a.BatchMean, ...) {saves=125440}
//     a.apply: scale_bias(X=x, ...) -> (Y=a : ...)
//     r: relu(X=a) -> (Out=r : ...)
//     c: conv2d(Input=r, Filter=w) -> (Output=c : ...)
//     a.again: scale_bias(X=x, ...) -> (Y=a.again : ...)
//     r.again: relu(X=a.again) -> (Out=r.again : ...)
//     w.grad: conv2d_grad_filter(Input=r.again, OutputGrad=c.grad) -> (...)
#ifndef HALFTONE_PASSES_LOWER_SPLIT_BATCH_NORM_H_
#define HALFTONE_PASSES_LOWER_SPLIT_BATCH_NORM_H_

#include <utility>

#include "passes/lower/pattern_set.h"
#include "passes/options/options.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class SplitBatchNorm : public Pass {
 public:
  // `kernels` is borrowed. For `compress` see weigh_batch_norm.h.
  explicit SplitBatchNorm(const KernelSet& kernels,
                          bool strict_f32_slots = false,
                          proto::Compress compress = {})
      : patterns_(kernels, strict_f32_slots), compress_(std::move(compress)) {}

  absl::string_view name() const override { return "split-batch-norm"; }
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  PatternSet patterns_;
  const proto::Compress compress_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_SPLIT_BATCH_NORM_H_
