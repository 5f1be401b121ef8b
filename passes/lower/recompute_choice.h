// Which ops of the forward part backward repeats, and which of their results it
// reads in few bits, so that the values of a step fit within some bytes.
//
// One line of time, the places of the ops, holds what lies in memory at each.
// Candidates come in the order of seconds per byte, the first of the net first:
// the longer a value would lie idle, the more room it leaves. One is taken
// where memory is short while it would lie idle, and undone if the copies that
// it needs, which then lie longer, find no room. So segments form on their own:
// where there is none left, a value is kept, and copies begin from it. What may
// be compressed is a candidate for that, too: it costs two passes over memory,
// and leaves its codes. A copy reads nothing that is compressed, for its bits
// are those of the original.
#ifndef HALFTONE_PASSES_LOWER_RECOMPUTE_CHOICE_H_
#define HALFTONE_PASSES_LOWER_RECOMPUTE_CHOICE_H_

#include <cstdint>
#include <vector>

#include "graph/targets/target.h"
#include "passes/lower/compressible.h"
#include "passes/lower/forward_part.h"
#include "passes/options/options.h"

namespace halftone {
namespace passes {

// By op id. `samples` are those of the rank. Where `within` cannot be met, what
// comes nearest.
std::vector<bool> ChooseRepeated(const ForwardPart& forward,
                                 const Target& target, int64_t samples,
                                 int64_t within);

// Of `compressible`, in order, what is better compressed than made again, or
// kept, by the same choice.
std::vector<Compressible> ChoosePacked(
    const ForwardPart& forward, const Target& target,
    const std::vector<Compressible>& compressible,
    const proto::Compress& compress, int64_t samples, int64_t within);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_RECOMPUTE_CHOICE_H_
