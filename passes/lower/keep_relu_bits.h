// keep-relu-bits: of a relu's result its gradient needs one bit per element.
// Where fusions of the target can hand on just that, forward writes the bits
// beside the result, and backward does not read the result again.
//
//   before
//     r.fused: fusion(X=[x, s, b, m, v]) -> (Out=[r : f16[B,16,8,8]
//         @channels_last]) {pattern="norm_elementwise"}   forward body {
//       ...
//       r: relu(X=n) -> (Out=r : f16[B,16,8,8] @channels_last)
//       return r
//     }
//     g.fused: fusion(X=[r, a, x, m, v]) -> (Out=[g, ...])
//         {pattern="relu_grad_norm"}   backward body {
//       feed r : f16[B,16,8,8] @channels_last
//       ...
//       g: relu_grad(Out=r, OutGrad=a) -> (XGrad=g : ...)
//     }
//   after
//     r.fused: fusion(X=[x, s, b, m, v]) -> (Out=[r : f16[B,16,8,8]
//         @channels_last, r.bits : u8[B,2,8,8] @channels_last])
//         {pattern="norm_elementwise_bits"}   forward body {
//       ...
//       r: relu(X=n) -> (Out=r : f16[B,16,8,8] @channels_last)
//       r.bits: relu_bits(Out=r) -> (Bits=r.bits : u8[B,2,8,8] @channels_last)
//       return r, r.bits
//     }
//     g.fused: fusion(X=[a, x, m, v, r.bits]) -> (Out=[g, ...])
//         {pattern="relu_grad_norm_bits"}   backward body {
//       ...
//       feed r.bits : u8[B,2,8,8] @channels_last
//       g: relu_grad_bits(Bits=r.bits, OutGrad=a) -> (XGrad=g : ...)
//     }
//
// Where 8 does not divide the channels all stays as it is.
#ifndef HALFTONE_PASSES_LOWER_KEEP_RELU_BITS_H_
#define HALFTONE_PASSES_LOWER_KEEP_RELU_BITS_H_

#include "passes/kernel_set.h"
#include "passes/lower/pattern_set.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class KeepReluBits : public Pass {
 public:
  // `kernels` is borrowed.
  explicit KeepReluBits(const KernelSet& kernels)
      : patterns_(kernels, /*strict_f32_slots=*/false) {}

  absl::string_view name() const override { return "keep-relu-bits"; }
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  PatternSet patterns_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_KEEP_RELU_BITS_H_
