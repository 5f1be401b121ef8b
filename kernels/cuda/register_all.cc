#include "kernels/cuda/register_all.h"

#include "kernels/cuda/conv_cudnn.h"

namespace halftone {
namespace kernels {

void RegisterCudaKernels(KernelRegistry& registry) {
  // First: they are preferred to our own.
  cuda::RegisterCudaCudnn(registry);
  cuda::RegisterCudaMatmul(registry);
  RegisterOwnCudaKernels(registry);
}

}  // namespace kernels
}  // namespace halftone
