// The lines on which the messages of a text-format protobuf begin.
#ifndef HALFTONE_GRAPH_IO_SOURCE_LINES_H_
#define HALFTONE_GRAPH_IO_SOURCE_LINES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace halftone {

// By name of a field of the outermost message: the 1-based line of each of
// its values, in order. For text that protobuf has parsed; protobuf's own
// record of locations takes several kilobytes an op.
absl::flat_hash_map<std::string, std::vector<int>> TopLevelLines(
    absl::string_view text);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IO_SOURCE_LINES_H_
