// freeze: parameters that a strategy names are not trained (fine-tuning): they
// get no gradient, no update and no optimizer state. Running statistics follow
// the data as ever.
//
//   before (optimizer { freeze: "conv*" })
//     cell conv1.w : f32[16,1,5,5] parameter trainable applied init=...
//   after
//     cell conv1.w : f32[16,1,5,5] parameter applied init=...
//
// Before backward, which follows trainable parameters alone.
#ifndef HALFTONE_PASSES_DIFFERENTIATE_FREEZE_H_
#define HALFTONE_PASSES_DIFFERENTIATE_FREEZE_H_

#include "passes/options/options.h"
#include "passes/pass.h"

namespace halftone {
namespace passes {

class Freeze : public Pass {
 public:
  explicit Freeze(const Options& options) : options_(options) {}

  absl::string_view name() const override { return "freeze"; }
  // Errors (FieldError's): a glob that matches no parameter.
  absl::StatusOr<bool> Run(Program& program) override;

 private:
  const Options& options_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_DIFFERENTIATE_FREEZE_H_
