// mask-pooled: where maxima of a relu's result are pooled and their places
// kept, the relu's gradient masks what is pooled and not the whole image.
//
//   before
//     r: relu(X=x) -> (Out=r : f16[B,64,112,112])
//     p: pool2d(X=r) -> (Out=p : f16[B,64,56,56], Argmax=p.Argmax : u8[...])
//     p.grad: max_pool2d_grad(OutGrad=g, Argmax=p.Argmax) ->
//         (XGrad=r.grad : f16[B,64,112,112])
//     r.grad: relu_grad(Out=r, OutGrad=r.grad) -> (XGrad=x.grad : ...)
//   after
//     r: relu(X=x) -> (Out=r : f16[B,64,112,112])
//     p: pool2d(X=r) -> (Out=p : f16[B,64,56,56], Argmax=p.Argmax : u8[...])
//     r.grad.pooled: relu_grad(Out=p, OutGrad=g) ->
//         (XGrad=r.grad.pooled : f16[B,64,56,56])
//     p.grad: max_pool2d_grad(OutGrad=r.grad.pooled, Argmax=p.Argmax) ->
//         (XGrad=x.grad : f16[B,64,112,112])
//
// The same bits: an element has a gradient where it is a window's maximum, and
// there what is pooled is what the relu made. Backward does not read the relu's
// result any more.
#ifndef HALFTONE_PASSES_LOWER_MASK_POOLED_H_
#define HALFTONE_PASSES_LOWER_MASK_POOLED_H_

#include "passes/pass.h"

namespace halftone {
namespace passes {

class MaskPooled : public Pass {
 public:
  absl::string_view name() const override { return "mask-pooled"; }
  absl::StatusOr<bool> Run(Program& program) override;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_MASK_POOLED_H_
