// master-weights: keeps the low-precision copy of a parameter from step to
// step. `w` stays the FP32 cell; the update that writes it writes the derived
// cell, too, so no step casts a parameter.
//
//   before
//     cell w : f32[784,256] parameter trainable applied init=...
//     entry train {
//       w.cast_fp16: cast(X=w) -> (Out=w.cast_fp16 : f16[784,256]) {to=f16}
//       fc0: matmul(X=x.cast_fp16, Y=w.cast_fp16) -> (Out=h : f16[B,256])
//       momentum.0: momentum(Param=[w], ...) -> (ParamOut=[w.next], ...)
//       commit w <- w.next
//   after
//     cell w.cast_fp16 : f16[784,256] derived(w) applied
//     entry train {
//       fc0: matmul(X=x.cast_fp16, Y=w.cast_fp16) -> (Out=h : f16[B,256])
//       momentum.0: momentum(Param=[w], ...) ->
//           (ParamOut=[w.next], ..., LowOut=[w.cast_fp16.next : f16[784,256]])
//       commit w <- w.next
//       commit w.cast_fp16 <- w.cast_fp16.next
//
// All entries read the cell. A frozen parameter's copy is only derived at
// startup: it has no commit. The names of the casts that went are handed on
// to the update (its origins).
#ifndef HALFTONE_PASSES_UPDATE_MASTER_WEIGHTS_H_
#define HALFTONE_PASSES_UPDATE_MASTER_WEIGHTS_H_

#include "passes/pass.h"

namespace halftone {
namespace passes {

class MasterWeights : public Pass {
 public:
  absl::string_view name() const override { return "master-weights"; }
  absl::StatusOr<bool> Run(Program& program) override;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_UPDATE_MASTER_WEIGHTS_H_
