// Every kernel of the GPU, by explicit functions: one per family file,
// kernels/cuda/<family>.cu, with the same names as graph/ops.
#ifndef HALFTONE_KERNELS_CUDA_REGISTER_ALL_H_
#define HALFTONE_KERNELS_CUDA_REGISTER_ALL_H_

#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {

// Adds all of them under "cuda". Needs no device.
void RegisterCudaKernels(KernelRegistry& registry);
// Those that are our own code and so can run on the host too, emulated.
void RegisterOwnCudaKernels(KernelRegistry& registry);

namespace cuda {

void RegisterCudaElementwise(KernelRegistry& registry);
void RegisterCudaDropout(KernelRegistry& registry);
void RegisterCudaGroupCodes(KernelRegistry& registry);
void RegisterCudaRecurrent(KernelRegistry& registry);
void RegisterCudaSoftmax(KernelRegistry& registry);
void RegisterCudaAttention(KernelRegistry& registry);
void RegisterCudaAttentionGrad(KernelRegistry& registry);
void RegisterCudaLoss(KernelRegistry& registry);
void RegisterCudaPointwiseLoss(KernelRegistry& registry);
void RegisterCudaNorm(KernelRegistry& registry);
void RegisterCudaRowNorm(KernelRegistry& registry);
void RegisterCudaConv(KernelRegistry& registry);
void RegisterCudaPool(KernelRegistry& registry);
void RegisterCudaResize(KernelRegistry& registry);
void RegisterCudaGridSampler(KernelRegistry& registry);
void RegisterCudaLogic(KernelRegistry& registry);
void RegisterCudaReduction(KernelRegistry& registry);
void RegisterCudaMove(KernelRegistry& registry);
void RegisterCudaJoin(KernelRegistry& registry);
void RegisterCudaLookups(KernelRegistry& registry);
void RegisterCudaShape(KernelRegistry& registry);
void RegisterCudaImage(KernelRegistry& registry);
void RegisterCudaCreation(KernelRegistry& registry);
void RegisterCudaAmp(KernelRegistry& registry);
void RegisterCudaCollective(KernelRegistry& registry);
void RegisterCudaOptimizer(KernelRegistry& registry);
// Calls of libraries.
void RegisterCudaMatmul(KernelRegistry& registry);

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_REGISTER_ALL_H_
