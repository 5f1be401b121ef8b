// Updates that take their gradients as they were reduced.
#ifndef HALFTONE_PASSES_LOWER_FOLD_UPDATES_H_
#define HALFTONE_PASSES_LOWER_FOLD_UPDATES_H_

#include "graph/ir/program.h"
#include "passes/kernel_set.h"

namespace halftone {
namespace passes {

// An update all of whose gradients come from clip_by_factor(unscale(cast(g)))
// (clip and cast may be missing, alike for all) reads g itself and takes
// InvScale and ClipFactor, which it multiplies in the same order in f32: the
// same bits, and no f32 gradient is ever written. Only where `kernels` has the
// key. Ops that lose their last reader stay for the caller to erase.
bool FoldUpdates(Block& block, const KernelSet& kernels);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_FOLD_UPDATES_H_
