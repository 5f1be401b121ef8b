// CUDA C++, or its emulation on the host (emulation/emulator.h): kernels are
// plain enough to run under both, so that their indices, tails, barriers and
// numbers are tested where there is no GPU.
#ifndef HALFTONE_KERNELS_CUDA_PLATFORM_H_
#define HALFTONE_KERNELS_CUDA_PLATFORM_H_

#ifdef __CUDACC__
#include <cuda_runtime.h>
#define HT_DEVICE __device__ __forceinline__
#define HT_SHARED(type, name) \
  __shared__ ::halftone::kernels::cuda::SharedType<type> name
#else
#include "kernels/cuda/emulation/emulator.h"
#define HT_DEVICE inline
#define HT_SHARED(type, name)                              \
  static ::halftone::kernels::cuda::SharedType<type> name; \
  ::halftone::emulation::ForgetShared(&name, sizeof(name))
#endif

namespace halftone {
namespace kernels {
namespace cuda {

// HT_SHARED(float[8][32], sums): memory that the threads of a block share. It
// holds nothing before they write it; the emulator sees to that.
template <typename T>
using SharedType = T;

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_PLATFORM_H_
