#include "graph/ops/register_all.h"

namespace halftone {

void RegisterAllOps(OpRegistry& registry) {
  ops::RegisterConv(registry);
  ops::RegisterMatmul(registry);
  ops::RegisterElementwise(registry);
  ops::RegisterUnary(registry);
  ops::RegisterActivation(registry);
  ops::RegisterDropout(registry);
  ops::RegisterGroupCodes(registry);
  ops::RegisterRecurrent(registry);
  ops::RegisterSoftmax(registry);
  ops::RegisterAttention(registry);
  ops::RegisterLoss(registry);
  ops::RegisterPointwiseLoss(registry);
  ops::RegisterNorm(registry);
  ops::RegisterRowNorm(registry);
  ops::RegisterPool(registry);
  ops::RegisterResize(registry);
  ops::RegisterGridSampler(registry);
  ops::RegisterLogic(registry);
  ops::RegisterReduction(registry);
  ops::RegisterSlice(registry);
  ops::RegisterJoin(registry);
  ops::RegisterPad(registry);
  ops::RegisterLookups(registry);
  ops::RegisterShape(registry);
  ops::RegisterImage(registry);
  ops::RegisterCreation(registry);
  ops::RegisterAmp(registry);
  ops::RegisterOptimizer(registry);
  ops::RegisterCollective(registry);
  ops::RegisterFusion(registry);
}

}  // namespace halftone
