// What ops have in common that move elements and compute nothing.
#ifndef HALFTONE_GRAPH_OPS_SHAPE_SCHEMA_H_
#define HALFTONE_GRAPH_OPS_SHAPE_SCHEMA_H_

#include "absl/strings/string_view.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace ops {

// From slot `in` to slot `out`, of any dtype. Infers nothing and has no
// gradient yet.
OpSchema ShapeSchema(absl::string_view name, absl::string_view doc,
                     uint32_t in_flags = kRequired, absl::string_view in = "X",
                     absl::string_view out = "Out",
                     uint32_t out_flags = kRequired);

}  // namespace ops
}  // namespace halftone

#endif  // HALFTONE_GRAPH_OPS_SHAPE_SCHEMA_H_
