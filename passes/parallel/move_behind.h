// Makes room for reductions that stand later than what they read.
#ifndef HALFTONE_PASSES_PARALLEL_MOVE_BEHIND_H_
#define HALFTONE_PASSES_PARALLEL_MOVE_BEHIND_H_

#include "absl/types/span.h"
#include "graph/ir/program.h"

namespace halftone {
namespace passes {

// Moves everything that depends on one of the reductions, given in their
// order, behind all other ops, in its old order: what reads an earlier one must
// not stand before a later one. Returns the first of it; invalid: there is
// none.
OpId MoveReadersBehind(Block& block, absl::Span<const OpId> reductions);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PARALLEL_MOVE_BEHIND_H_
