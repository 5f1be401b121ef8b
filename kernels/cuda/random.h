// Single draws in kernels.
#ifndef HALFTONE_KERNELS_CUDA_RANDOM_H_
#define HALFTONE_KERNELS_CUDA_RANDOM_H_

#include <cstdint>

#include "graph/base/philox.h"
#include "kernels/cuda/platform.h"

namespace halftone {
namespace kernels {
namespace cuda {

// The word of its block of four that is an element's draw.
HT_DEVICE uint32_t WordOf(const Philox4& draw, int64_t element) {
  const int64_t k = element % 4;
  const uint32_t low = k == 0 ? draw.x[0] : draw.x[1];
  const uint32_t high = k == 2 ? draw.x[2] : draw.x[3];
  return k < 2 ? low : high;
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_RANDOM_H_
