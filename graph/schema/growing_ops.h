// The registry behind Ops(), for what adds to it.
#ifndef HALFTONE_GRAPH_SCHEMA_GROWING_OPS_H_
#define HALFTONE_GRAPH_SCHEMA_GROWING_OPS_H_

#include "graph/schema/op_registry.h"

namespace halftone {

OpRegistry& GrowingOps();

}  // namespace halftone

#endif  // HALFTONE_GRAPH_SCHEMA_GROWING_OPS_H_
