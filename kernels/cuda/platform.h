// CUDA C++, or its emulation on the host (emulation/emulator.h): kernels are
// plain enough to run under both, so that their indices, tails, barriers and
// numbers are tested where there is no GPU.
#ifndef HALFTONE_KERNELS_CUDA_PLATFORM_H_
#define HALFTONE_KERNELS_CUDA_PLATFORM_H_

#ifdef __CUDACC__
#include <cuda_runtime.h>
#define HT_DEVICE __device__ __forceinline__
#else
#include "kernels/cuda/emulation/emulator.h"
#define HT_DEVICE inline
#endif

#endif  // HALFTONE_KERNELS_CUDA_PLATFORM_H_
