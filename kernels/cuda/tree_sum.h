// Sums of the virtual shards of a step.
#ifndef HALFTONE_KERNELS_CUDA_TREE_SUM_H_
#define HALFTONE_KERNELS_CUDA_TREE_SUM_H_

#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {
namespace cuda {

// Called by RegisterCudaCollective.
void RegisterCudaTreeSum(KernelRegistry& registry);

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_TREE_SUM_H_
