// Parts of RegisterCudaElementwise that have files of their own.
#ifndef HALFTONE_KERNELS_CUDA_ELEMENTWISE_H_
#define HALFTONE_KERNELS_CUDA_ELEMENTWISE_H_

#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {
namespace cuda {

// Each in the file of its name: elementwise_binary.cu ...
void RegisterCudaBinary(KernelRegistry& registry);
void RegisterCudaGradients(KernelRegistry& registry);
void RegisterCudaCast(KernelRegistry& registry);
void RegisterCudaSum(KernelRegistry& registry);
void RegisterCudaChain(KernelRegistry& registry);

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_ELEMENTWISE_H_
