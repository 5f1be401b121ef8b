// A library of products for tests: plain loops by columns that compute what
// cuBLASLt's documentation says, with every epilogue.
#ifndef HALFTONE_KERNELS_CUDA_EMULATION_PRODUCTS_H_
#define HALFTONE_KERNELS_CUDA_EMULATION_PRODUCTS_H_

#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {
namespace cuda {

void RegisterEmulatedProducts(KernelRegistry& registry);

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_EMULATION_PRODUCTS_H_
