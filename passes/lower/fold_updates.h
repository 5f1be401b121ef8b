// clean-up.fold-updates: updates take their gradients as they were reduced.
//
//   before
//     w.grad: cast(X=w.low.grad.reduced) -> (Out=w.grad : f32[10]) {to=f32}
//     w.grad.unscaled: unscale(X=w.grad, InvScale=@inv_scale) -> (...)
//     momentum.0: momentum(Param=[w], Grad=[w.grad.unscaled], ...) -> (...)
//   after: what is unread is drop-dead's
//     momentum.0: momentum(Param=[w], Grad=[w.low.grad.reduced], ...,
//         InvScale=@inv_scale) -> (...)   origins=[w.grad.unscaled, w.grad]
//
// An update all of whose gradients come from clip_by_factor(unscale(cast(g)))
// (clip and cast may be missing, alike for all) reads g itself and takes
// InvScale and ClipFactor, which it multiplies in the same order in f32: the
// same bits, and no f32 gradient is ever written. Only where the target has
// the key.
#ifndef HALFTONE_PASSES_LOWER_FOLD_UPDATES_H_
#define HALFTONE_PASSES_LOWER_FOLD_UPDATES_H_

#include "passes/kernel_set.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class FoldUpdates : public Pass {
 public:
  explicit FoldUpdates(const KernelSet& kernels)  // borrowed
      : kernels_(&kernels) {}

  absl::string_view name() const override { return "clean-up.fold-updates"; }
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  const KernelSet* kernels_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_FOLD_UPDATES_H_
