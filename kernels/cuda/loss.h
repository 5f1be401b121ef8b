// Parts of RegisterCudaLoss that have files of their own.
#ifndef HALFTONE_KERNELS_CUDA_LOSS_H_
#define HALFTONE_KERNELS_CUDA_LOSS_H_

#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {
namespace cuda {

void RegisterCudaReduce(KernelRegistry& registry);  // loss_reduce.cu
void RegisterCudaTopK(KernelRegistry& registry);    // loss_top_k.cu

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_LOSS_H_
