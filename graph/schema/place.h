// Where an error is: "mlp.pbtxt:12: fc0 (matmul): ...".
#ifndef HALFTONE_GRAPH_SCHEMA_PLACE_H_
#define HALFTONE_GRAPH_SCHEMA_PLACE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "graph/ir/program.h"

namespace halftone {

// "mlp.pbtxt:12: ", or what is known of it; empty if nothing is.
std::string PlaceOf(const Program& program, int line);

// The error with place, op and type in front, the latter two unless its
// message begins with them.
absl::Status AtOp(const absl::Status& status, const Program& program, int line,
                  absl::string_view op, absl::string_view type);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_SCHEMA_PLACE_H_
