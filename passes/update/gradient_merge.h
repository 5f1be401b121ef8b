// gradient-merge: a step of k micro-batches. Those before the last run an entry
// of their own, `accumulate`: forward and backward, and each gradient and each
// total added to a cell. The last runs train, which adds its own to those
// before they are reduced: one reduction, one verdict and one update a step.
//
//   before (train)
//     w.low.grad: conv2d_grad_filter(...) -> (... : f16[16,1,5,5])
//     gradients.f16.0: all_reduce(X=[w.low.grad]) -> ... {of="gradient"}
//   after
//     cell w.low.grad.sum : f32[16,1,5,5] accumulator always per_rank
//     entry train {
//       w.low.grad: conv2d_grad_filter(...) -> (... : f16[16,1,5,5])
//       w.low.grad.merged: accumulate(X=w.low.grad, Sum=w.low.grad.sum) ->
//           (Out=w.low.grad.merged : f16[16,1,5,5]) {scale=0.25}
//       w.low.grad.cleared: fill_zeros_like(X=w.low.grad.sum) -> (...)
//       gradients.f16.0: all_reduce(X=[w.low.grad.merged]) -> ...
//       commit w.low.grad.sum <- w.low.grad.cleared
//     entry accumulate {
//       w.low.grad: conv2d_grad_filter(...) -> (... : f16[16,1,5,5])
//       w.low.grad.added: accumulate(X=w.low.grad, Sum=w.low.grad.sum) ->
//           (Out=w.low.grad.added : f32[16,1,5,5])
//       commit w.low.grad.sum <- w.low.grad.added
//
// Sums are f32, and what is reduced is q = 2^-ceil(log2 k) of them: in f16 it
// is no larger than the largest of the k, and exact but for subnormals;
// check-and-unscale takes q out again. Cells of class applied change in train
// alone, under the verdict on all k: what is not finite in one stays so in the
// sums. Running statistics are chained over the micro-batches in cells of their
// own (running_statistics.h). Micro-batches are weighed by n_r / c like ranks,
// so the sums are those of the whole batch, however it is split.
#ifndef HALFTONE_PASSES_UPDATE_GRADIENT_MERGE_H_
#define HALFTONE_PASSES_UPDATE_GRADIENT_MERGE_H_

#include <cstdint>

#include "passes/pass.h"

namespace halftone {
namespace passes {

// q for a step of k micro-batches.
double MergeScale(int64_t merged_steps);

class GradientMerge : public Pass {
 public:
  explicit GradientMerge(int64_t merged_steps) : merged_steps_(merged_steps) {}

  absl::string_view name() const override { return "gradient-merge"; }
  // Errors (kModel): the loss has denominators, whose totals would be needed
  // before the first micro-batch.
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  int64_t merged_steps_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_UPDATE_GRADIENT_MERGE_H_
