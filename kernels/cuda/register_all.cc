#include "kernels/cuda/register_all.h"

namespace halftone {
namespace kernels {

void RegisterCudaKernels(KernelRegistry& registry) {
  cuda::RegisterCudaMatmul(registry);
  RegisterOwnCudaKernels(registry);
}

}  // namespace kernels
}  // namespace halftone
