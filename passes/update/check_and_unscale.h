// check-and-unscale: one verdict over everything the update reads, and the
// gradients at their true scale.
//
//   before (train): the reduced gradients w.low.grad.reduced : f16, whose
//     up-cast is w.grad, and s.grad.reduced : f32; the total @count
//   after: in addition
//     @inv_scale: gradient_inv_scale(LossScaling=@loss_scaling, Count=@count,
//         LargestCount=@largest_count) -> (InvScale=@inv_scale : f32[])
//         {gradient_scale="pre"}   loss-scale f32 SCHEMA
//     @found_inf: check_finite(Low=[w.low.grad.reduced], F32=[s.grad.reduced],
//         Stats=[bn1.global_mean, bn1.global_variance], InvScale=@inv_scale) ->
//         (FoundInf=@found_inf : bool[], FirstBad=@first_bad : i32[],
//         SquaredNorm=@squared_norm : f32[2])
//     @grad_norm: global_norm(SquaredNorm=@squared_norm) ->
//         (Norm=@grad_norm : f32[]) {order=[0, 1]}
//     w.grad.unscaled: unscale(X=w.grad, InvScale=@inv_scale) ->
//         (Out=w.grad.unscaled : f32[784,256])
//     s.grad.unscaled: unscale(X=s.grad.reduced, InvScale=@inv_scale) -> (...)
//     @loss_scaling.next: update_loss_scaling(LossScaling=@loss_scaling,
//         GoodSteps=@good_steps, BadSteps=@bad_steps, FoundInf=@found_inf) ->
//         (LossScalingOut=@loss_scaling.next, ...)
//     commit @loss_scaling <- @loss_scaling.next        (and both counters)
//     result @found_inf = @found_inf                    (and the others)
//
// The check reads what was reduced as it is; it is there at every level, so a
// step is all or nothing with a constant scale, too. Within Low and within F32
// gradients stand in parameter order; global_norm's `order` restores the
// parameter order over both, so that sums do not depend on precisions.
//
// Where parts of the loss have a scaler each, what is reduced is unscaled
// already, and each part's update_loss_scaling reads its own verdict.
#ifndef HALFTONE_PASSES_UPDATE_CHECK_AND_UNSCALE_H_
#define HALFTONE_PASSES_UPDATE_CHECK_AND_UNSCALE_H_

#include "passes/options/options.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class CheckAndUnscale : public Pass {
 public:
  // Constant scaling is the same op with both ratios 1. The scale cell's first
  // value is scale-loss's matter.
  explicit CheckAndUnscale(const proto::Strategy& strategy)
      : amp_(strategy.amp()), dist_(strategy.dist()) {}

  absl::string_view name() const override { return "check-and-unscale"; }
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  proto::Amp amp_;
  proto::Dist dist_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_UPDATE_CHECK_AND_UNSCALE_H_
