// keep-argmax: maximum pooling says where its maxima lie, for its gradient.
//
//   before
//     p: pool2d(X=x) -> (Out=p : f16[B,64,56,56]) {ksize=[3,3] strides=[2,2]
//         paddings=[1,1]}
//   after
//     p: pool2d(X=x) -> (Out=p : f16[B,64,56,56],
//         Argmax=p.Argmax : u8[B,64,56,56]) {ksize=[3,3] strides=[2,2] ...}
//
// In train, where a trainable parameter reaches the op: backward then emits
// max_pool2d_grad, which reads a byte per window and nothing of x. Only where
// windows overlap (where they tile the image the gradient that reads x moves
// its bytes as fast as a copy), or where the target pools what a batch norm and
// its relu make on its way, so that x is not in memory. What the schema or the
// target refuses stays, too: other windows than those of ksize, and of more
// elements than a byte can number.
#ifndef HALFTONE_PASSES_DIFFERENTIATE_KEEP_ARGMAX_H_
#define HALFTONE_PASSES_DIFFERENTIATE_KEEP_ARGMAX_H_

#include "passes/kernel_set.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class KeepArgmax : public Pass {
 public:
  explicit KeepArgmax(const KernelSet& kernels)  // borrowed
      : kernels_(&kernels) {}

  absl::string_view name() const override { return "keep-argmax"; }
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  const KernelSet* kernels_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_DIFFERENTIATE_KEEP_ARGMAX_H_
