// Parts of RegisterCudaElementwise that have files of their own.
#ifndef HALFTONE_KERNELS_CUDA_ELEMENTWISE_H_
#define HALFTONE_KERNELS_CUDA_ELEMENTWISE_H_

#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {
namespace cuda {

void RegisterCudaBinary(KernelRegistry& registry);  // elementwise_binary.cu
void RegisterCudaCast(KernelRegistry& registry);    // elementwise_cast.cu
void RegisterCudaSum(KernelRegistry& registry);     // elementwise_sum.cu
void RegisterCudaChain(KernelRegistry& registry);   // elementwise_chain.cu

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_ELEMENTWISE_H_
