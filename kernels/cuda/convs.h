// Under which keys convolutions are registered, by what they compute.
#ifndef HALFTONE_KERNELS_CUDA_CONVS_H_
#define HALFTONE_KERNELS_CUDA_CONVS_H_

#include <vector>

#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {
namespace cuda {

// Of convolutions, transposed ones and the gradients of images and of filters;
// best first.
struct ConvCandidates {
  std::vector<Candidate> result, transposed, image, filter;
};
// Filter gradients are registered in the images' type alone, which is all that
// cuDNN has.
void AddCudaConvs(KernelRegistry& registry, const ConvCandidates& candidates);

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_CONVS_H_
