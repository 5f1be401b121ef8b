// legality: refuses a program that the target cannot run, with all violations
// of all entries at once. Changes nothing.
//
//   error: 2 ops cannot run on cpu
//     train: fc0 (matmul, m.pbtxt:12): no kernel matmul(f16,f16)@row_major on
//       cpu; there is: matmul(f32,f32)@row_major, ...
//     train: bn1 (sync_batch_norm, m.pbtxt:13): has no kernel on any target
//       and had to be split
#ifndef HALFTONE_PASSES_LOWER_LEGALITY_H_
#define HALFTONE_PASSES_LOWER_LEGALITY_H_

#include "passes/kernel_set.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class Legality : public Pass {
 public:
  explicit Legality(const KernelSet& kernels)  // borrowed
      : kernels_(&kernels) {}

  absl::string_view name() const override { return "legality"; }
  // Errors: kModel where the kernel set lacks a key or pattern; kCompilerBug
  // where an op should have been split or a parameter's gradient passes none
  // or several reductions.
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  const KernelSet* kernels_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_LEGALITY_H_
