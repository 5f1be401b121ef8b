// clip: scales all gradients down when their common norm is too large.
//
//   before (train): @grad_norm, w.grad.unscaled
//   after: in addition
//     @clip_factor: clip_factor(Norm=@grad_norm) ->
//         (Factor=@clip_factor : f32[]) {max_norm=1}   optimize f32 SCHEMA
//     w.grad.clipped: clip_by_factor(X=w.grad.unscaled, Factor=@clip_factor) ->
//         (Out=w.grad.clipped : f32[784,256])   optimize f32 SCHEMA
#ifndef HALFTONE_PASSES_UPDATE_CLIP_H_
#define HALFTONE_PASSES_UPDATE_CLIP_H_

#include "passes/pass.h"

namespace halftone {
namespace passes {

class Clip : public Pass {
 public:
  // The strategy's `clip { global_norm }`; 0: no clipping, no change.
  explicit Clip(double global_norm) : global_norm_(global_norm) {}

  absl::string_view name() const override { return "clip"; }
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  double global_norm_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_UPDATE_CLIP_H_
