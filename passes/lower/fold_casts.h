// Casts that a neighbouring op takes over.
#ifndef HALFTONE_PASSES_LOWER_FOLD_CASTS_H_
#define HALFTONE_PASSES_LOWER_FOLD_CASTS_H_

#include "graph/ir/program.h"
#include "passes/kernel_set.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {

// Lets each op whose slots have type variables of their own read through
// widening casts and write what a narrowing cast made of its output, where
// `kernels` has that key; as many of them at once as it has. Also takes out
// a widening that is followed by a narrowing back. Every change keeps the
// bits: ops compute in f32 and round once at their outputs.
//
// Casts that lose their last reader go. Nothing is left for a second run.
bool FoldCasts(Block& block, const KernelSet& kernels, HeldValues& held);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_FOLD_CASTS_H_
