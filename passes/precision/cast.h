// The one way in which precision passes make a cast.
#ifndef HALFTONE_PASSES_PRECISION_CAST_H_
#define HALFTONE_PASSES_PRECISION_CAST_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/ir/program.h"

namespace halftone {
namespace passes {

// "x.cast_fp16", ".cast_bf16", ".cast_fp32": the names that Paddle gives.
std::string CastName(absl::string_view value, DType to);

// Adds `<value>.cast_<to>`; a taken name gets a suffix.
absl::StatusOr<ValueId> AddCast(Block& block, ValueId value, DType to,
                                Reason reason, NameId because_of,
                                Block::Position position);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_PRECISION_CAST_H_
