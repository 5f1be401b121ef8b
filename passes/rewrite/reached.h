// What gradients flow through, for the passes that ask before there are any.
#ifndef HALFTONE_PASSES_REWRITE_REACHED_H_
#define HALFTONE_PASSES_REWRITE_REACHED_H_

#include <vector>

#include "graph/ir/program.h"

namespace halftone {
namespace passes {

// Whether the value is a parameter's that is to be trained.
bool IsTrainable(const Block& block, ValueId value);

// By value id: these parameters, and what of float they reach through forward
// ops that have a gradient.
std::vector<bool> ReachedByParameters(const Block& block);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_REWRITE_REACHED_H_
