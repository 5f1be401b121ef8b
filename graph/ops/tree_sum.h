// Sums of the virtual shards of a step: what a rank adds before ranks do.
#ifndef HALFTONE_GRAPH_OPS_TREE_SUM_H_
#define HALFTONE_GRAPH_OPS_TREE_SUM_H_

#include "graph/schema/op_registry.h"

namespace halftone {
namespace ops {

// Called by RegisterCollective.
void RegisterTreeSum(OpRegistry& registry);

}  // namespace ops
}  // namespace halftone

#endif  // HALFTONE_GRAPH_OPS_TREE_SUM_H_
