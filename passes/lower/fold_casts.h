// clean-up.fold-casts: casts that a neighbouring op takes over.
//
// An op whose schema gives input and output type variables of their own takes
// a neighbouring cast if the kernel set has that key, as many of them at once
// as it has: it computes in f32 either way and rounds once at its output, so
// the bits are the same. An input takes a widening cast, an output a narrowing
// one. A widening followed by a narrowing to the same dtype goes; a narrowing
// followed by a widening stays: it rounds.
//
//   before
//     x: image_normalize(X=image) -> (Out=x : f32[B,1,28,28])
//     x.cast_fp16: cast(X=x) -> (Out=x.cast_fp16 : f16[B,1,28,28]) {to=f16}
//   after
//     x: image_normalize(X=image) -> (Out=x.cast_fp16 : f16[B,1,28,28])
//         origins=[x.cast_fp16]
//
// Casts that lose their last reader go. Nothing is left for a second run.
#ifndef HALFTONE_PASSES_LOWER_FOLD_CASTS_H_
#define HALFTONE_PASSES_LOWER_FOLD_CASTS_H_

#include "passes/kernel_set.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class FoldCasts : public Pass {
 public:
  explicit FoldCasts(const KernelSet& kernels)  // borrowed
      : kernels_(&kernels) {}

  absl::string_view name() const override { return "clean-up.fold-casts"; }
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  const KernelSet* kernels_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_FOLD_CASTS_H_
