// insert-allreduce: makes gradients and totals those of all ranks.
//
// Every trainable parameter's gradient passes exactly one reduction: of the
// scaled value in the dtype in which the backward ops made it, before its
// up-cast and before the finite check, so that half the bytes travel and every
// rank sees the same verdict. A parameter read in both precisions has one f32
// gradient sum, and that is what is reduced.
//
//   before (train)
//     conv1.grad: conv2d_grad_filter(...) -> (FilterGrad=w.cast_fp16.grad)
//     w.grad: cast(X=w.cast_fp16.grad) -> (Out=w.grad : f32[16,1,5,5]) {to=f32}
//   after
//     conv1.grad: conv2d_grad_filter(...) -> (FilterGrad=w.cast_fp16.grad)
//     w.cast_fp16.grad.reduced: all_reduce(X=[w.cast_fp16.grad]) ->
//         (Out=[w.cast_fp16.grad.reduced : f16[16,1,5,5]])
//         {of="gradient", gradient_scale="pre"}   communicate f16 SCHEMA
//     w.grad: cast(X=w.cast_fp16.grad.reduced) -> (Out=w.grad) {to=f32}
//
// The forward part of train and eval ends with one f32 reduction of all that
// is counted: n_r x loss, n_r, metric counts and what they are over; in train
// also the stop flag. The statistics of batch norms that are not synchronised
// are gathered behind it, and those of all ranks' samples made of them:
//
//     @loss_sum.local: elementwise_mul(X=loss, Y=@local_count) -> (...)
//     totals: all_reduce(X=[@loss_sum.local, @local_count, ..., @stop]) ->
//         (Out=[@loss_sum : f32[], @count : f32[], ...])
//         {of="totals"}   communicate f32 SCHEMA
//     totals.norms: combine_stats(Mean=[bn1.BatchMean, ...],
//         Variance=[...], Count=[...]) -> (Mean=[bn1.global_mean, ...], ...)
//         {of="totals"}   communicate f32 SCHEMA
//     result @loss_sum = @loss_sum
//
// allreduce_always_fp32 has the up-cast stand before the reduction,
// fp16_allreduce casts f32 gradients down before and up after; delay_allreduce
// moves all reductions behind backward.
//
// Where parts of the loss have a scaler each, a second one counts on how many
// ranks a part sent back what is not finite:
//     totals.parts: all_reduce(X=[@local_not_finite.0,
//         @local_not_finite.1]) -> (Out=[@not_finite.0, @not_finite.1])
//
// A second run finds the reductions in place and changes nothing.
#ifndef HALFTONE_PASSES_PARALLEL_INSERT_ALLREDUCE_H_
#define HALFTONE_PASSES_PARALLEL_INSERT_ALLREDUCE_H_

#include "graph/base/dtype.h"
#include "passes/options/options.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class InsertAllreduce : public Pass {
 public:
  // With `gradient_scale: pre` each rank multiplies by 2^-ceil(log2 N) before
  // the sum, so that f16 sums of many ranks do not overflow. `low`: the dtype
  // of fp16_allreduce.
  explicit InsertAllreduce(const proto::Dist& dist, DType low = DType::kF16)
      : dist_(dist), low_(low) {}

  absl::string_view name() const override { return "insert-allreduce"; }
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  proto::Dist dist_;
  DType low_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PARALLEL_INSERT_ALLREDUCE_H_
