// clean-up.drop-dead: ops that nothing needs go.
//
//   before
//     w.grad.unscaled: unscale(X=w.grad, InvScale=@inv_scale) -> (...)
//     (nothing reads w.grad.unscaled)
//   after: it is gone, and so is what it alone read
#ifndef HALFTONE_PASSES_LOWER_DROP_DEAD_H_
#define HALFTONE_PASSES_LOWER_DROP_DEAD_H_

#include "passes/pass.h"

namespace halftone {
namespace passes {

class DropDead : public Pass {
 public:
  absl::string_view name() const override { return "clean-up.drop-dead"; }
  absl::StatusOr<bool> Run(Program& program) override;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_DROP_DEAD_H_
