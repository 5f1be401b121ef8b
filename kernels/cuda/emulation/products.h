// Libraries of products for tests: plain loops by columns, as cuBLASLt's
// documentation says what it computes.
#ifndef HALFTONE_KERNELS_CUDA_EMULATION_PRODUCTS_H_
#define HALFTONE_KERNELS_CUDA_EMULATION_PRODUCTS_H_

#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {
namespace cuda {

// Two candidates: "epilogues" has every one, "products" none but a bias, so
// that our own kernels do what it lacks.
void RegisterEmulatedProducts(KernelRegistry& registry);

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_EMULATION_PRODUCTS_H_
