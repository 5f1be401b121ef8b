// local-sgd: each rank updates by its own gradients; now and then, in an entry
// of its own, ranks average what they have made of the model (LocalSGD).
//
//   before (train)
//     gradients.f32.0: all_reduce(X=[w.grad]) -> (Out=[w.grad.reduced])
//         {of="gradient", gradient_scale="pre"}
//     @inv_scale: gradient_inv_scale(LossScaling=@loss_scaling, Count=@count,
//         LargestCount=@largest_count) -> (...) {gradient_scale="pre"}
//     @found_inf: check_finite(F32=[w.grad.reduced], ...) ->
//         (FoundInf=@found_inf, ...)
//     momentum.0: momentum(Param=[w], Grad=[w.grad.reduced], ...) -> (...)
//   after
//     cell w.velocity : f32[784,256] slot(w) applied per_rank
//     cell w.snapshot : f32[784,256] accumulator(w) always per_rank
//     entry train {
//       @inv_scale: gradient_inv_scale(LossScaling=@loss_scaling,
//           Count=@local_count, ...) -> (...) {gradient_scale="post"}
//       @found_inf: check_finite(F32=[w.grad], ...) ->
//           (FoundInf=@found_inf.own, ...)
//       @found_inf.combined: combine_checks(FirstBad=@first_bad.own, ...) ->
//           (FoundInf=@found_inf, ...)
//       momentum.0: momentum(Param=[w], Grad=[w.grad], ...) -> (...)
//     entry average {
//       w.change: elementwise_sub(X=w.snapshot, Y=w) -> (...)
//       changes.0: all_reduce(X=[w.change]) -> (Out=[w.change.sum]) {...}
//       ranks: all_reduce(X=[@rank_weight]) -> (Out=[@ranks]) {...}
//       w.change.mean: elementwise_div(X=w.change.sum, Y=@ranks) -> (...)
//       w.averaged: elementwise_sub(X=w.snapshot, Y=w.change.mean) -> (...)
//       commit w <- w.averaged
//       commit w.snapshot <- w.averaged
//
// What is averaged is what Fleet's LocalSGDOptimizer does: parameters and
// running statistics, which there are parameters, too, by their changes since
// the last time; and averages over the steps, which it does not have. Running
// statistics take each rank's own batch, slots stay each rank's own. A verdict
// stays that of all ranks: clocks and loss scale, by which the host decides,
// are equal on all of them in every step.
//
// It runs on the finished program: what passes before know of gradients holds
// for those of one rank.
#ifndef HALFTONE_PASSES_PARALLEL_LOCAL_SGD_H_
#define HALFTONE_PASSES_PARALLEL_LOCAL_SGD_H_

#include "passes/options/options.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class LocalSgd : public Pass {
 public:
  explicit LocalSgd(const proto::Dist& dist) : dist_(dist) {}

  absl::string_view name() const override { return "local-sgd"; }
  // Errors (kModel): something in the model has a snapshot's name.
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  proto::Dist dist_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PARALLEL_LOCAL_SGD_H_
