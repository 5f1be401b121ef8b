// Which tile of which head a block of attention has.
#ifndef HALFTONE_KERNELS_CUDA_ATTENTION_PLACE_H_
#define HALFTONE_KERNELS_CUDA_ATTENTION_PLACE_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/launch.h"

namespace halftone {
namespace kernels {
namespace cuda {

inline constexpr int kTile = 32;  // rows, and columns

// Calls launch_with(std::integral_constant<int, kSlice>()) with how many
// elements of an output's rows a block has, which are of `width`.
template <typename LaunchWith>
void WithSlice(int64_t width, const LaunchWith& launch_with) {
  if (width <= 64) {
    launch_with(std::integral_constant<int, 64>());
  } else {
    launch_with(std::integral_constant<int, 128>());
  }
}

template <int kSlice>
struct BlockPlace {
  int64_t slice, first, head, sample;

  HT_DEVICE BlockPlace(int64_t length, int64_t width, int64_t heads) {
    const int64_t slices = CeilDiv(width, kSlice);
    const int64_t tiles = CeilDiv(length, kTile);
    int64_t at = blockIdx.x;
    slice = at % slices * kSlice;
    at /= slices;
    first = at % tiles * kTile;
    at /= tiles;
    head = at % heads;
    sample = at / heads;
  }
  static int64_t Blocks(int64_t length, int64_t width, int64_t heads,
                        int64_t samples) {
    return CeilDiv(width, kSlice) * CeilDiv(length, kTile) * heads * samples;
  }
};

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_ATTENTION_PLACE_H_
