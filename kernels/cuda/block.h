// Sums, maxima and the like over the threads of a block, in one fixed order.
#ifndef HALFTONE_KERNELS_CUDA_BLOCK_H_
#define HALFTONE_KERNELS_CUDA_BLOCK_H_

#include <cstdint>

#include "kernels/cuda/platform.h"

namespace halftone {
namespace kernels {
namespace cuda {

inline constexpr int kWarp = 32;
inline constexpr int kMaxWarps = 32;

struct Plus {
  template <typename T>
  HT_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};
struct Least {
  template <typename T>
  HT_DEVICE T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
// NaNs are left out.
struct Most {
  HT_DEVICE float operator()(float a, float b) const { return b > a ? b : a; }
};

// The combination of all lanes' values, in all lanes. `combine` must not care
// which of two values comes first.
template <typename T, typename F>
HT_DEVICE T CombineWarp(T value, const F& combine) {
#pragma unroll
  for (int mask = kWarp / 2; mask > 0; mask /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, mask));
  }
  return value;
}

// The combination of all threads' values, in all threads. All threads of the
// block (whole warps) must call it. `none`: what changes no value.
template <typename T, typename F>
HT_DEVICE T CombineBlock(T value, T none, const F& combine) {
  HT_SHARED(T[kMaxWarps], warps);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  value = CombineWarp(value, combine);
  if (lane == 0) warps[warp] = value;
  __syncthreads();
  const int count = blockDim.x / kWarp;
  value = CombineWarp(lane < count ? warps[lane] : none, combine);
  __syncthreads();  // before the next call writes `warps`
  return value;
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_BLOCK_H_
