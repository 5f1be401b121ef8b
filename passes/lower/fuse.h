// fuse: replaces groups of ops that one kernel can do by `fusion` ops that
// carry the group as their body. Only patterns for which the kernel set has a
// key are used (graph/fusions declares them, an earlier one wins); the planner
// inlines the body wherever no kernel supports the bound shapes.
//
//   before
//     fc0: matmul(X=x, Y=w, Bias=b) -> (Out=fc0 : f16[B,256])
//     h: relu(X=fc0) -> (Out=h : f16[B,256])
//   after
//     h.fused: fusion(X=[x, w, b]) -> (Out=[h : f16[B,256]])
//         {pattern="matmul_bias_relu"}   forward ... origins=[fc0, h] body {
//       feed x : f16[B,784]
//       ...
//       fc0: matmul(X=x, Y=w, Bias=b) -> (Out=fc0 : f16[B,256])
//       h: relu(X=fc0) -> (Out=h : f16[B,256])
//       return h
//     }
//
// A fusion makes every value of its body that somebody else reads, and stands
// where the group's last op stood, or, where one of these values is read before
// that, before its first reader: groups of which that cannot be said, because
// what they read is made in between, are left alone. A pattern whose kernels
// round the value of a KeepF32 slot says so in the fusion's attribute `rounds`;
// with amp.strict_f32_slots there is none.
//
// Runs after append-backward, so a value that a backward op reads is never
// hidden in a body.
#ifndef HALFTONE_PASSES_LOWER_FUSE_H_
#define HALFTONE_PASSES_LOWER_FUSE_H_

#include "passes/kernel_set.h"
#include "passes/lower/pattern_set.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class Fuse : public Pass {
 public:
  // `kernels` is borrowed.
  explicit Fuse(const KernelSet& kernels, bool strict_f32_slots = false)
      : patterns_(kernels, strict_f32_slots) {}

  absl::string_view name() const override { return "fuse"; }
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  PatternSet patterns_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_FUSE_H_
