// What the two binaries that test the CUDA kernels share: on a GPU
// (devices_cuda.cc) and on the host (devices_emulated.cc).
#ifndef HALFTONE_TESTS_OPS_CUDA_CODE_H_
#define HALFTONE_TESTS_OPS_CUDA_CODE_H_

#include "kernels/kernel_registry.h"

namespace halftone {

// Those of the CUDA kernels that the binary can run.
void RegisterTestedKernels(kernels::KernelRegistry& registry);

}  // namespace halftone

#endif  // HALFTONE_TESTS_OPS_CUDA_CODE_H_
