// Tiles of scores that attention and its gradient share: 32 by 32, in a block
// of 8 warps. Each warp has 4 rows (in the gradients of keys and values:
// columns) of its own, and a lane for each of 32 others.
#ifndef HALFTONE_KERNELS_CUDA_ATTENTION_TILES_H_
#define HALFTONE_KERNELS_CUDA_ATTENTION_TILES_H_

#include <cstdint>

#include "kernels/cuda/attention_data.h"
#include "kernels/cuda/attention_place.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/launch.h"
#include "kernels/functors/math.h"

namespace halftone {
namespace kernels {
namespace cuda {

inline constexpr int kOwn = 4;                 // of a warp
inline constexpr int kAttentionThreads = 256;  // kTile / kOwn warps
inline constexpr int kBlocks = 3;              // on a processor, or more
inline constexpr int kDepth = 64;              // of a product, at a time

// Rows of a product: those that all lanes of a warp read together, and those
// of its lanes, a column more, so that these do not wait for each other.
using OwnTile = float[kTile][kDepth];
using OtherTile = float[kTile][kDepth + 1];
using WeightTile = float[kTile][kTile];
// Elements of an output's rows, 64 or 128 at a time, and a thread's part of
// the sums of 4 rows.
template <int kSlice>
using SliceTile = float[kTile][kSlice];
template <int kSlice>
using SliceSums = float[kOwn][kSlice / kWarp];

// tile[row][i] = element `from` + i of row `first` + row, for i < kWidth; 0
// beyond the edges. None of a thread's loads, down a column, waits for another.
template <int kWidth, int kStride>
HT_DEVICE void LoadTile(const HeadRows& rows, int64_t first, int64_t from,
                        float (&tile)[kTile][kStride]) {
  constexpr int kStep = kAttentionThreads / kWidth, kEach = kTile / kStep;
  const int row = threadIdx.x / kWidth, i = threadIdx.x % kWidth;
  const int64_t at = rows.offset + (first + row) * rows.stride + from + i;
  const int64_t below = from + i < rows.width ? rows.length - first - row : 0;
  Raw raw[kEach] = {};
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    if (j * kStep >= below) continue;
    raw[j] = LoadRaw<1>(rows.dtype, rows.data, at + j * kStep * rows.stride);
  }
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    float x[1];
    Unpack(rows.dtype, raw[j], x);
    tile[row + j * kStep][i] = x[0];
  }
}

// products[i] = own row (4 * warp + i) of `own` from `first_own` times this
// lane's row of `other` from `first_other`. All threads of the block call it.
HT_DEVICE void MultiplyTile(const HeadRows& own, int64_t first_own,
                            const HeadRows& other, int64_t first_other,
                            OwnTile& own_tile, OtherTile& other_tile,
                            float (&products)[kOwn]) {
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  for (int i = 0; i < kOwn; ++i) products[i] = 0;
  for (int64_t depth = 0; depth < own.width; depth += kDepth) {
    LoadTile<kDepth>(own, first_own, depth, own_tile);
    LoadTile<kDepth>(other, first_other, depth, other_tile);
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < kDepth; ++k) {
      const float y = other_tile[lane][k];
      for (int i = 0; i < kOwn; ++i) {
        products[i] =
            functors::Fma(own_tile[warp * kOwn + i][k], y, products[i]);
      }
    }
    __syncthreads();
  }
}

// sums += weights of the warp's own rows times the rows of `other` from
// `first` on, their elements [slice, slice + kSlice). All threads of the block
// call it, after they wrote `weights`, without a barrier in between.
template <int kSlice>
HT_DEVICE void AddTile(const WeightTile& weights, const HeadRows& other,
                       int64_t first, int64_t slice,
                       float (&tile)[kTile][kSlice], SliceSums<kSlice>& sums) {
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  LoadTile<kSlice>(other, first, slice, tile);
  __syncthreads();
#pragma unroll 8
  for (int j = 0; j < kTile; ++j) {
    for (int part = 0; part < kSlice / kWarp; ++part) {
      const float y = tile[j][part * kWarp + lane];
      for (int i = 0; i < kOwn; ++i) {
        sums[i][part] =
            functors::Fma(weights[warp * kOwn + i][j], y, sums[i][part]);
      }
    }
  }
  __syncthreads();
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_ATTENTION_TILES_H_
