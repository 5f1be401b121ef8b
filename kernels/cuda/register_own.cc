#include "kernels/cuda/register_all.h"

namespace halftone {
namespace kernels {

void RegisterOwnCudaKernels(KernelRegistry& registry) {
  cuda::RegisterCudaElementwise(registry);
  cuda::RegisterCudaDropout(registry);
  cuda::RegisterCudaGroupCodes(registry);
  cuda::RegisterCudaRecurrent(registry);
  cuda::RegisterCudaSoftmax(registry);
  cuda::RegisterCudaAttention(registry);
  cuda::RegisterCudaLoss(registry);
  cuda::RegisterCudaPointwiseLoss(registry);
  cuda::RegisterCudaNorm(registry);
  cuda::RegisterCudaRowNorm(registry);
  cuda::RegisterCudaConv(registry);
  cuda::RegisterCudaPool(registry);
  cuda::RegisterCudaResize(registry);
  cuda::RegisterCudaGridSampler(registry);
  cuda::RegisterCudaLogic(registry);
  cuda::RegisterCudaReduction(registry);
  cuda::RegisterCudaMove(registry);
  cuda::RegisterCudaJoin(registry);
  cuda::RegisterCudaLookups(registry);
  cuda::RegisterCudaShape(registry);
  cuda::RegisterCudaImage(registry);
  cuda::RegisterCudaCreation(registry);
  cuda::RegisterCudaAmp(registry);
  cuda::RegisterCudaCollective(registry);
  cuda::RegisterCudaOptimizer(registry);
}

}  // namespace kernels
}  // namespace halftone
