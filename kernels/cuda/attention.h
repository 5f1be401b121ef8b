// Tiles of scores that attention and its gradient share: 32 by 32, in a block
// of 8 warps. Each warp has 4 rows (in the gradients of keys and values:
// columns) of its own, and a lane for each of 32 others.
#ifndef HALFTONE_KERNELS_CUDA_ATTENTION_H_
#define HALFTONE_KERNELS_CUDA_ATTENTION_H_

#include <cstdint>

#include "graph/base/philox.h"
#include "kernels/common/attention.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/random.h"
#include "kernels/cuda/vector.h"
#include "kernels/functors/math.h"

namespace halftone {
namespace kernels {
namespace cuda {

inline constexpr int kTile = 32;                // rows, and columns
inline constexpr int kOwn = 4;                  // of a warp
inline constexpr int kAttentionThreads = 256;   // kTile / kOwn warps
inline constexpr int kDepth = 64;               // of a product, at a time
inline constexpr int kSlice = 128;              // elements of an output's rows
inline constexpr int kLaneParts = kSlice / 32;  // of a lane

// One head of one sample of a tensor [batch, length, heads, width].
struct HeadRows {
  DType dtype;
  const void* data;
  int64_t offset, stride, length, width;

  HT_DEVICE HeadRows(DType type, const void* tensor, int64_t sample,
                     int64_t head, int64_t rows, int64_t heads, int64_t each)
      : dtype(type),
        data(tensor),
        offset((sample * rows * heads + head) * each),
        stride(heads * each),
        length(rows),
        width(each) {}

  // 0 beyond its edges.
  HT_DEVICE float At(int64_t row, int64_t i) const {
    if (row >= length || i >= width) return 0.0f;
    return LoadOne(dtype, data, offset + row * stride + i);
  }
  HT_DEVICE void Set(void* to, int64_t row, int64_t i, float x) const {
    if (row >= length || i >= width) return;
    StoreOne(dtype, to, offset + row * stride + i, x);
  }
};

// What all kernels are given.
struct AttentionData {
  AttentionOp op;
  const void *q, *k, *v, *mask;
  const int64_t *seed, *step, *first_sample;  // null: no dropout

  static AttentionData Of(const AttentionOp& op, const Buffers& b) {
    const auto input = [&b](int i) { return i < 0 ? nullptr : b.inputs[i]; };
    const auto scalar = [&](int i) {
      return static_cast<const int64_t*>(op.drops() ? input(i) : nullptr);
    };
    return {op,
            b.inputs[0],
            b.inputs[1],
            b.inputs[2],
            input(op.mask),
            scalar(op.seed),
            scalar(op.step),
            scalar(op.first_sample)};
  }

  HT_DEVICE HeadRows Query(const void* tensor, int64_t sample, int64_t head,
                           int64_t width) const {
    return {op.dtype,      tensor,         sample, head,
            op.shape.rows, op.shape.heads, width};
  }
  HT_DEVICE HeadRows Key(const void* tensor, int64_t sample, int64_t kv,
                         int64_t width) const {
    return {op.dtype,          tensor, sample, kv, op.shape.columns,
            op.shape.kv_heads, width};
  }

  // The score of a product: scaled and masked; -infinity where the row must
  // not look, and outside.
  HT_DEVICE float Score(float product, int64_t sample, int64_t head,
                        int64_t row, int64_t column) const {
    const AttentionShape& s = op.shape;
    if (row >= s.rows || column >= s.ColumnsOf(row)) {
      return -functors::Infinity();
    }
    const float score = product * s.scale;
    if (mask == nullptr) return score;
    const int64_t at =
        s.MaskRow(sample, head, row) + column * s.mask_strides[3];
    if (op.mask_dtype == DType::kBool) {
      return static_cast<const bool*>(mask)[at] ? score : -functors::Infinity();
    }
    return score + LoadOne(op.mask_dtype, mask, at);
  }

  // What dropout multiplies a weight by.
  HT_DEVICE float Keep(int64_t sample, int64_t head, int64_t row,
                       int64_t column) const {
    if (seed == nullptr) return 1.0f;
    const int64_t element =
        op.shape.RowOf(0, head, row) * op.shape.columns + column;
    const Philox4 draw =
        PhiloxDraw(PhiloxKey(static_cast<uint64_t>(*seed), op.stream),
                   static_cast<uint64_t>(*step),
                   static_cast<uint64_t>(*first_sample + sample),
                   static_cast<uint32_t>(element / 4));
    return op.dropout(1.0f, WordOf(draw, element));
  }
};

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

void RegisterCudaAttentionGrad(KernelRegistry& registry);

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_ATTENTION_H_
