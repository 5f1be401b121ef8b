// Limits on what any program may hold: beyond them arithmetic on sizes could
// overflow and names could not be shown.
#ifndef HALFTONE_GRAPH_VERIFY_LIMITS_H_
#define HALFTONE_GRAPH_VERIFY_LIMITS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "graph/ir/type.h"

namespace halftone {

inline constexpr int kMaxRank = 16;
inline constexpr int kMaxNameBytes = 4096;

// "it has more than 2^50 elements" (at B = 1) and the like; empty if the dims
// are within limits. Negative dims are not.
std::string BadDims(const TensorType& type);

// "is empty", "is not UTF-8", "has control characters", "is longer than ...";
// empty for a good name.
std::string BadName(absl::string_view name);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_VERIFY_LIMITS_H_
