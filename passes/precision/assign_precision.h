// assign-precision: gives each forward op the precision in which it runs, with
// the reason. Nothing but decisions changes; insert-casts applies them.
//
//   before
//     c: conv2d(Input=x, Filter=w) -> (Output=c : f32[B,16,28,28])
//     r: relu(X=c) -> (Out=r : f32[B,16,28,28])
//     e: exp(X=r) -> (Out=e : f32[B,16,28,28])
//   after (O1, f16)
//     c: conv2d(...) -> (...)   forward f16 WHITE_LIST
//     r: relu(...) -> (...)   forward f16 GRAY_ALL_LOW <- c
//     e: exp(...) -> (...)   forward f32 BLACK_LIST
//
// The policy (policy.h) decides most ops by themselves. Those of the classes
// gray and clear follow the values they read, in two sweeps:
// 1. In program order, an op follows its float inputs outside KeepF32 slots.
//    Under all_low it is low iff all of them are; parameters and constants do
//    not count, and neither do outputs of free ops. Free is an op that reads
//    nothing else. Under any_low (Paddle's classic rule) a black producer
//    wins, else one low producer is enough; nobody is free.
// 2. In reverse order, a free op is low iff it has readers, all of them low,
//    none through a KeepF32 slot.
// Where an op would be low, a missing kernel and then the loss keep it in f32.
#ifndef HALFTONE_PASSES_PRECISION_ASSIGN_PRECISION_H_
#define HALFTONE_PASSES_PRECISION_ASSIGN_PRECISION_H_

#include <vector>

#include "passes/kernel_set.h"
#include "passes/options/options.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class AssignPrecision : public Pass {
 public:
  // Both are borrowed.
  AssignPrecision(const Options& options, const KernelSet& kernels)
      : options_(options), kernels_(kernels) {}

  absl::string_view name() const override { return "assign-precision"; }
  // Errors, as FieldError: a glob that matches nothing, an op that is both
  // white and black by name, a user's white op without a low kernel.
  absl::StatusOr<bool> Run(Program& program) override;
  // What it decides of the ops of `train`, by op id.
  absl::StatusOr<std::vector<Decision>> Decide(const Program& program) const;

 private:
  const Options& options_;
  const KernelSet& kernels_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PRECISION_ASSIGN_PRECISION_H_
