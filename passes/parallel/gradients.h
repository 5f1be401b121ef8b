// Where a trainable parameter's gradient is on its way to the update.
#ifndef HALFTONE_PASSES_PARALLEL_GRADIENTS_H_
#define HALFTONE_PASSES_PARALLEL_GRADIENTS_H_

#include <vector>

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
  // What the update starts from: the up-cast of `reduced` (of `local`,
  // before), else `reduced` itself.
  ValueId wide;
  // `wide` unscaled, clipped, as far as passes have come.
  ValueId value;
};

// What is known of Entry::gradients(), in that order.
std::vector<ParameterGradient> FindGradients(const Entry& entry);
// They make `values` of them, one each.
void SetGradients(const std::vector<ValueId>& values, Entry* entry);

// What the all_reduce of=gradient that reads `local` makes of it; invalid if
// there is none.
ValueId ReducedOf(const Block& block, ValueId local);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PARALLEL_GRADIENTS_H_
