// A part of RegisterOptimizer that has a file of its own.
#ifndef HALFTONE_GRAPH_OPS_OPTIMIZER_DGC_H_
#define HALFTONE_GRAPH_OPS_OPTIMIZER_DGC_H_

#include "graph/schema/op_registry.h"

namespace halftone {
namespace ops {

void RegisterDgc(OpRegistry& registry);

}  // namespace ops
}  // namespace halftone

#endif  // HALFTONE_GRAPH_OPS_OPTIMIZER_DGC_H_
