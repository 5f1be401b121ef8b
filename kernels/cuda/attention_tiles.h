// Tiles of scores that attention and its gradient share: 32 by 32, in a block
// of 8 warps. Each warp has 4 rows (in the gradients of keys and values:
// columns) of its own, and a lane for each of 32 others.
#ifndef HALFTONE_KERNELS_CUDA_ATTENTION_TILES_H_
#define HALFTONE_KERNELS_CUDA_ATTENTION_TILES_H_

#include <cstdint>

#include "kernels/cuda/attention_data.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/launch.h"

namespace halftone {
namespace kernels {
namespace cuda {

inline constexpr int kTile = 32;                // rows, and columns
inline constexpr int kOwn = 4;                  // of a warp
inline constexpr int kAttentionThreads = 256;   // kTile / kOwn warps
inline constexpr int kDepth = 64;               // of a product, at a time
inline constexpr int kSlice = 128;              // elements of an output's rows
inline constexpr int kLaneParts = kSlice / 32;  // of a lane

// A tile of rows as a product reads it: a column more, so that lanes that read
// a column do not wait for each other.
using DepthTile = float[kTile][kDepth + 1];
using SliceTile = float[kTile][kSlice];
using WeightTile = float[kTile][kTile + 1];

// products[i] = own row (4 * warp + i) of `own` from `first_own` times this
// lane's row of `other` from `first_other`. All threads of the block call it.
HT_DEVICE void MultiplyTile(const HeadRows& own, int64_t first_own,
                            const HeadRows& other, int64_t first_other,
                            DepthTile& own_tile, DepthTile& other_tile,
                            float (&products)[kOwn]) {
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  for (int i = 0; i < kOwn; ++i) products[i] = 0;
  for (int64_t depth = 0; depth < own.width; depth += kDepth) {
    for (int at = threadIdx.x; at < kTile * kDepth; at += kAttentionThreads) {
      const int row = at / kDepth, k = at % kDepth;
      own_tile[row][k] = own.At(first_own + row, depth + k);
      other_tile[row][k] = other.At(first_other + row, depth + k);
    }
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < kDepth; ++k) {
      const float y = other_tile[lane][k];
      for (int i = 0; i < kOwn; ++i) {
        products[i] += own_tile[warp * kOwn + i][k] * y;
      }
    }
    __syncthreads();
  }
}

// A thread's part of a slice of 4 output rows.
using SliceSums = float[kOwn][kLaneParts];

// sums += weights of the warp's own rows times the rows of `other` from
// `first` on, their elements [slice, slice + kSlice). All threads of the block
// call it, after they wrote `weights`, without a barrier in between.
HT_DEVICE void AddTile(const WeightTile& weights, const HeadRows& other,
                       int64_t first, int64_t slice, SliceTile& tile,
                       SliceSums& sums) {
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  for (int at = threadIdx.x; at < kTile * kSlice; at += kAttentionThreads) {
    tile[at / kSlice][at % kSlice] =
        other.At(first + at / kSlice, slice + at % kSlice);
  }
  __syncthreads();
  for (int j = 0; j < kTile; ++j) {
    for (int part = 0; part < kLaneParts; ++part) {
      const float y = tile[j][part * kWarp + lane];
      for (int i = 0; i < kOwn; ++i) {
        sums[i][part] += weights[warp * kOwn + i][j] * y;
      }
    }
  }
  __syncthreads();
}

// Which tile and slice of which head a block has.
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

#endif  // HALFTONE_KERNELS_CUDA_ATTENTION_TILES_H_
