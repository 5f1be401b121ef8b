// One function per family; RegisterAllOps (graph/schema/op_registry.h) calls
// them all. A new op needs no edit here, a new family one line in each file.
#ifndef HALFTONE_GRAPH_OPS_REGISTER_ALL_H_
#define HALFTONE_GRAPH_OPS_REGISTER_ALL_H_

#include "graph/schema/op_registry.h"

namespace halftone {
namespace ops {

void RegisterConv(OpRegistry& registry);
void RegisterMatmul(OpRegistry& registry);
void RegisterElementwise(OpRegistry& registry);
void RegisterUnary(OpRegistry& registry);
void RegisterActivation(OpRegistry& registry);
void RegisterDropout(OpRegistry& registry);
void RegisterGroupCodes(OpRegistry& registry);
void RegisterRecurrent(OpRegistry& registry);
void RegisterSoftmax(OpRegistry& registry);
void RegisterAttention(OpRegistry& registry);
void RegisterLoss(OpRegistry& registry);
void RegisterPointwiseLoss(OpRegistry& registry);
void RegisterNorm(OpRegistry& registry);
void RegisterRowNorm(OpRegistry& registry);
void RegisterPool(OpRegistry& registry);
void RegisterResize(OpRegistry& registry);
void RegisterGridSampler(OpRegistry& registry);
void RegisterLogic(OpRegistry& registry);
void RegisterReduction(OpRegistry& registry);
void RegisterSlice(OpRegistry& registry);
void RegisterJoin(OpRegistry& registry);
void RegisterPad(OpRegistry& registry);
void RegisterLookups(OpRegistry& registry);
void RegisterShape(OpRegistry& registry);
void RegisterImage(OpRegistry& registry);
void RegisterCreation(OpRegistry& registry);
void RegisterAmp(OpRegistry& registry);
void RegisterOptimizer(OpRegistry& registry);
void RegisterCollective(OpRegistry& registry);
void RegisterFusion(OpRegistry& registry);

}  // namespace ops
}  // namespace halftone

#endif  // HALFTONE_GRAPH_OPS_REGISTER_ALL_H_
