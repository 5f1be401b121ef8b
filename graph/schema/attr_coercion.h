// Attributes as models write them, brought to the kind that a schema wants.
#ifndef HALFTONE_GRAPH_SCHEMA_ATTR_COERCION_H_
#define HALFTONE_GRAPH_SCHEMA_ATTR_COERCION_H_

#include <optional>

#include "graph/ir/attr.h"

namespace halftone {

// `value` as `kind`, where nothing is lost: an int for a float, a scalar for a
// list of one, bool for 0 and 1 and back, a dtype's name for a dtype, an empty
// list for any empty list. Otherwise nullopt.
std::optional<AttrValue> CoerceAttr(AttrValue value, AttrKind kind);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_SCHEMA_ATTR_COERCION_H_
