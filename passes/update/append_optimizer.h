// append-optimizer: the new value of everything that a step changes, and the
// commits that take it over.
//
//   before (train): w.grad.unscaled (or w.grad.clipped), @found_inf
//   after: in addition
//     @lr: learning_rate(Applied=@applied, Schedule=@schedule) ->
//         (Out=@lr : f32[]) {policy="constant"}   optimize f32 SCHEMA
//     momentum.0: momentum(Param=[w], Grad=[w.grad.unscaled],
//         Velocity=[w.velocity], LearningRate=@lr, FoundInf=@found_inf) ->
//         (ParamOut=[w.next : f32[784,256]], VelocityOut=[w.velocity.next])
//         {weight_decay=0, mu=0.9, use_nesterov=false}
//     bn1.running: running_stats(OldMean=bn1.mean, OldVariance=bn1.var,
//         BatchMean=bn1.global_mean, BatchVariance=bn1.global_variance,
//         FoundInf=@found_inf) -> (Mean=bn1.mean.next, Variance=bn1.var.next)
//     @applied.next: tick_applied(X=@applied, FoundInf=@found_inf) -> (...)
//     @attempted.next: tick(X=@attempted) -> (Out=@attempted.next : i64[])
//     commit w <- w.next                                (and all others)
//     result @lr = @lr                                  (and both clocks)
//
// One multi-tensor op holds all parameters that share the strategy's group,
// their dtype, the dtype in which their gradients were reduced and whether
// they have a low-precision copy: one launch each. Slots are new cells,
// f32 at every level. Clips by value or by each gradient's own norm are
// attributes of the updates; such norms check_finite has made. A norm that is
// applied several times chains its updates in program order and commits once.
#ifndef HALFTONE_PASSES_UPDATE_APPEND_OPTIMIZER_H_
#define HALFTONE_PASSES_UPDATE_APPEND_OPTIMIZER_H_

#include "passes/options/options.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class AppendOptimizer : public Pass {
 public:
  AppendOptimizer(const proto::Optimizer& optimizer,
                  const proto::LearningRate& lr)
      : optimizer_(optimizer), lr_(lr) {}

  absl::string_view name() const override { return "append-optimizer"; }
  // Errors (kModel): no optimizer method is set. A group whose glob matches
  // no parameter is legal: strategies are shared between models.
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  proto::Optimizer optimizer_;
  proto::LearningRate lr_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_UPDATE_APPEND_OPTIMIZER_H_
