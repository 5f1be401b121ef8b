// scale-loss: makes the gradient that backward starts from. The loss is a mean
// over n_r samples of this rank; weighted by n_r / c, where c is the largest
// count of any rank, sums over ranks are those of one device with the whole
// batch. The loss scale keeps small gradients out of f16's underflow.
//
//   before (train)
//     loss: mean(X=ce) -> (Out=loss : f32[])
//   after
//     ce: ... -> (Loss=ce : f32[B])
//     @local_count: element_count(X=ce) -> (Out=@local_count : f32[])   loss-scale f32 SCHEMA
//     loss: mean(X=ce) -> (Out=loss : f32[])
//     loss.grad: gradient_seed(LossScaling=@loss_scaling, Count=@local_count, LargestCount=@largest_count, Loss=loss) -> (Out=loss.grad : f32[])   loss-scale f32 SCHEMA
//
// The weight is never above 1, and 1 where all counts are equal. A rank that
// counts nothing (no samples, or a mask of zeros) has weight 0 and adds
// nothing: where a model divides by that count, append-backward keeps the NaN
// from its gradients. Where no rank counts anything the step is one whose
// gradients are 0: it is applied, so momentum and weight decay go on, and it
// has no loss.
//
// Where each part of the loss has a scaler there is a seed for each:
//     ce.weighted.grad: gradient_seed(LossScaling=@loss_scaling, ...)
//     aux.weighted.grad: gradient_seed(LossScaling=@loss_scaling.1, ...)
#ifndef HALFTONE_PASSES_DIFFERENTIATE_SCALE_LOSS_H_
#define HALFTONE_PASSES_DIFFERENTIATE_SCALE_LOSS_H_

#include <string>

#include "passes/pass.h"

namespace halftone {
namespace passes {

class ScaleLoss : public Pass {
 public:
  // What the cell `@loss_scaling` starts with; whether each part of the loss
  // has one, and whether ranks count alike.
  ScaleLoss(double init_loss_scaling, bool per_loss, bool mean_over_ranks)
      : init_loss_scaling_(init_loss_scaling),
        per_loss_(per_loss),
        mean_over_ranks_(mean_over_ranks) {}

  absl::string_view name() const override { return "scale-loss"; }
  // Errors (kModel): the loss is missing or is not an f32 value; it has
  // denominators, which are shares of all ranks' samples, and ranks count
  // alike.
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  // `of`: the value that backward starts from.
  absl::Status Seed(Program& program, Block& block, const std::string& of,
                    const std::string& scaler) const;

  double init_loss_scaling_;
  bool per_loss_;
  bool mean_over_ranks_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_DIFFERENTIATE_SCALE_LOSS_H_
