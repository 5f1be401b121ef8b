// Fusions that are copied take their bodies along.
#ifndef HALFTONE_PASSES_REWRITE_COPY_BODY_H_
#define HALFTONE_PASSES_REWRITE_COPY_BODY_H_

#include <memory>

#include "graph/ir/program.h"

namespace halftone {
namespace passes {

// The body of a fusion, for another op of the same program.
std::unique_ptr<Block> CopyBody(const Block& from);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_REWRITE_COPY_BODY_H_
