// What pooling and its gradient share.
#ifndef HALFTONE_KERNELS_CUDA_POOL_H_
#define HALFTONE_KERNELS_CUDA_POOL_H_

#include <cstdint>

#include "kernels/common/pool_shape.h"
#include "kernels/cuda/map.h"
#include "kernels/kernel_registry.h"

namespace halftone {
namespace kernels {
namespace cuda {

// From a flat index of [planes][slices][rows][columns][channels] to its parts.
struct PoolIndex {
  Divider channels, columns, rows, slices;

  PoolIndex() = default;
  PoolIndex(int64_t slice_count, int64_t row_count, int64_t column_count,
            int64_t channel_count)
      : channels(channel_count > 0 ? channel_count : 1),
        columns(column_count > 0 ? column_count : 1),
        rows(row_count > 0 ? row_count : 1),
        slices(slice_count > 0 ? slice_count : 1) {}

  struct Place {
    int64_t plane, slice, row, column, channel;
  };
  HT_DEVICE Place Of(int64_t i) const {
    const int64_t pixel = channels.Divide(i);
    const int64_t line = columns.Divide(pixel);
    const int64_t slice = rows.Divide(line);
    const int64_t plane = slices.Divide(slice);
    return {plane, slice - plane * slices.divisor(),
            line - slice * rows.divisor(), pixel - line * columns.divisor(),
            i - pixel * channels.divisor()};
  }
};

// Vectors of channels.
inline int PoolVector(const PoolShape& shape, DType dtype, bool aligned) {
  if (!aligned) return 1;
  const int vector = VectorOf({dtype});
  if (vector == 8 && shape.channels % 8 == 0) return 8;
  return shape.channels % 4 == 0 ? 4 : 1;
}

// Where in a tensor of planes a vector of channels starts.
HT_DEVICE int64_t PoolPlace(int64_t plane, int64_t slice, int64_t row,
                            int64_t column, int64_t channel,
                            const PoolShape& shape, bool result) {
  const int64_t slices = result ? shape.d.out : shape.d.in;
  const int64_t rows = result ? shape.h.out : shape.h.in;
  const int64_t columns = result ? shape.w.out : shape.w.in;
  return (((plane * slices + slice) * rows + row) * columns + column) *
             shape.channels +
         channel;
}

// Bytes [i, i + V); i is a multiple of V, p aligned for vectors of others.
template <int V>
HT_DEVICE void LoadBytes(const void* p, int64_t i, uint8_t (&to)[V]) {
  uint32_t words[2] = {0, 0};
  if constexpr (V == 8) {
    const uint2 v = LoadAs<uint2>(p, i);
    words[0] = v.x;
    words[1] = v.y;
  } else if constexpr (V == 4) {
    words[0] = LoadAs<uint32_t>(p, i);
  } else {
    words[0] = LoadAs<uint8_t>(p, i);
  }
#pragma unroll
  for (int k = 0; k < V; ++k) {
    to[k] = static_cast<uint8_t>(words[k / 4] >> (k % 4 * 8));
  }
}
template <int V>
HT_DEVICE void StoreBytes(void* p, int64_t i, const uint8_t (&from)[V]) {
  uint32_t words[2] = {0, 0};
#pragma unroll
  for (int k = 0; k < V; ++k) {
    words[k / 4] |= uint32_t{from[k]} << (k % 4 * 8);
  }
  if constexpr (V == 8) {
    StoreAs(p, i, uint2{words[0], words[1]});
  } else if constexpr (V == 4) {
    StoreAs(p, i, words[0]);
  } else {
    StoreAs(p, i, from[0]);
  }
}

// Place of an element at `i` in window `o` along one dim.
HT_DEVICE int64_t PlaceIn(const PoolDim& dim, int64_t o, int64_t i) {
  return i - o * dim.stride + dim.before;
}

void RegisterCudaPoolGrad(KernelRegistry& registry);  // pool_grad.cu

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_POOL_H_
