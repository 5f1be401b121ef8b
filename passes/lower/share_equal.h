// Common subexpressions: ops that compute the same from the same.
#ifndef HALFTONE_PASSES_LOWER_SHARE_EQUAL_H_
#define HALFTONE_PASSES_LOWER_SHARE_EQUAL_H_

#include "graph/ir/program.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {

// Replaces each op that equals an earlier one (op, inputs, attributes, output
// types) by that one. Not ops that are NoMerge, nor fusions. Nothing is left
// for a second run, but what was edited after it: it need only look at ops that
// were edited after `since`, a Program::edit(), and their like.
bool ShareEqualOps(Block& block, HeldValues& held, uint64_t since = 0);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_SHARE_EQUAL_H_
