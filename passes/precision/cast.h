// The one way in which precision passes make a cast.
#ifndef HALFTONE_PASSES_PRECISION_CAST_H_
#define HALFTONE_PASSES_PRECISION_CAST_H_

#include "absl/status/statusor.h"
#include "graph/ir/program.h"

namespace halftone {
namespace passes {

// `<value>.cast_fp16`, `.cast_bf16` or `.cast_fp32`: the names that Paddle
// gives. For people: what became of a cast is in origins, cells and readers.
NameId CastName(Block& block, ValueId value, DType to);

// Adds a cast of that name; a taken name gets a suffix.
absl::StatusOr<ValueId> AddCast(Block& block, ValueId value, DType to,
                                Reason reason, NameId because_of,
                                Block::Position position);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PRECISION_CAST_H_
