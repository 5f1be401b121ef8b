// Parts of RegisterCudaAmp that have files of their own.
#ifndef HALFTONE_KERNELS_CUDA_AMP_H_
#define HALFTONE_KERNELS_CUDA_AMP_H_

#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {
namespace cuda {

void RegisterCudaCheckFinite(KernelRegistry& registry);  // amp_check_finite.cu

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_AMP_H_
