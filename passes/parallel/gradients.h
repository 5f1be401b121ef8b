// Where a trainable parameter's gradient is on its way to the update.
#ifndef HALFTONE_PASSES_PARALLEL_GRADIENTS_H_
#define HALFTONE_PASSES_PARALLEL_GRADIENTS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/ir/program.h"

namespace halftone {
namespace passes {

struct ParameterGradient {
  CellId parameter;
  // What this rank's backward ops made, before any up-cast: f16 where the
  // parameter is read low. Parameters may share it (a + b hands one on).
  ValueId local;
  // `local` summed over all ranks; invalid before insert-allreduce.
  ValueId reduced;
  // What the update starts from: `<w>.grad` where it is the up-cast of
  // `reduced` (of `local`, before), else `reduced` itself.
  ValueId wide;
};

// The gradients of `block`'s trainable parameters, in the cells' order. A
// parameter that the loss does not depend on has none.
std::vector<ParameterGradient> FindGradients(const Block& block);

// What the all_reduce of=gradient that reads `local` makes of it; invalid if
// there is none.
ValueId ReducedOf(const Block& block, ValueId local);

// "<parameter>.grad": the name that append-backward gives a gradient.
std::string GradientName(const Cell& parameter);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PARALLEL_GRADIENTS_H_
