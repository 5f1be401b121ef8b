// Parts of RegisterCudaOptimizer that have files of their own.
#ifndef HALFTONE_KERNELS_CUDA_OPTIMIZER_H_
#define HALFTONE_KERNELS_CUDA_OPTIMIZER_H_

#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {
namespace cuda {

// optimizer_average.cu
void RegisterCudaAverage(KernelRegistry& registry);
// optimizer_dgc.cu
void RegisterCudaDgc(KernelRegistry& registry);
// optimizer_norms.cu
void RegisterCudaNormOptimizer(KernelRegistry& registry);
// optimizer_learning_rate.cu
void RegisterCudaLearningRate(KernelRegistry& registry);

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_OPTIMIZER_H_
