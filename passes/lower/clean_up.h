// clean-up: the same bits from fewer ops and fewer bytes.
//
// - Equal ops are shared (not those that are NoMerge). A value that is a member
//   of reductions more than once for it is reduced once: parameters whose
//   gradients are equal share a reduced one, and each has its own update.
// - An op whose schema gives input and output type variables of their own
//   takes a neighbouring cast if the kernel set has that key: it computes in
//   f32 either way and rounds once, so the bits are the same. An input takes a
//   widening cast, an output a narrowing one.
// - A widening followed by a narrowing to the same dtype goes; a narrowing
//   followed by a widening stays: it rounds.
// - An update takes its gradients' up-cast, unscale and clip.
// - Ops that nobody reads go.
//
//   before
//     x: image_normalize(X=image) -> (Out=x : f32[B,1,28,28])
//     x.cast_fp16: cast(X=x) -> (Out=x.cast_fp16 : f16[B,1,28,28]) {to=f16}
//     ...
//     w.grad: cast(X=w.low.grad.reduced) -> (Out=w.grad : f32[10]) {to=f32}
//     w.grad.unscaled: unscale(X=w.grad, InvScale=@inv_scale) -> (...)
//     momentum.0: momentum(Param=[w], Grad=[w.grad.unscaled], ...) -> (...)
//   after
//     x: image_normalize(X=image) -> (Out=x.cast_fp16 : f16[B,1,28,28])
//     ...
//     momentum.0: momentum(Param=[w], Grad=[w.low.grad.reduced], ...,
//         InvScale=@inv_scale) -> (...)
//
// An op that took others over has their names among its origins.
#ifndef HALFTONE_PASSES_LOWER_CLEAN_UP_H_
#define HALFTONE_PASSES_LOWER_CLEAN_UP_H_

#include "passes/kernel_set.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class CleanUp : public Pass {
 public:
  explicit CleanUp(const KernelSet& kernels)  // borrowed
      : kernels_(&kernels) {}

  absl::string_view name() const override { return "clean-up"; }
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  const KernelSet* kernels_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_CLEAN_UP_H_
