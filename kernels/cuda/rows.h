// Kernels with a block for each row of a tensor: softmax, cross entropy, the
// largest of a row.
#ifndef HALFTONE_KERNELS_CUDA_ROWS_H_
#define HALFTONE_KERNELS_CUDA_ROWS_H_

#include <algorithm>
#include <cstdint>

#include "kernels/common/shapes.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/vector.h"
#include "kernels/functors/math.h"

namespace halftone {
namespace kernels {
namespace cuda {

// Threads for a row that is read in vectors: one for each, in whole warps, up
// to a block that goes over the row several times.
inline int RowThreads(int64_t length, int vector) {
  const int64_t warps = CeilDiv(length, int64_t{vector} * kWarp);
  return kWarp * static_cast<int>(std::clamp<int64_t>(warps, 1, 256 / kWarp));
}

// Vectors in which rows can be read and written.
inline int RowVector(const RowShape& rows, std::initializer_list<DType> dtypes,
                     std::initializer_list<const void*> pointers) {
  if (rows.stride != 1 || !Aligned(pointers)) return 1;
  const int vector = VectorOf(dtypes);
  if (vector == 8 && rows.length % 8 == 0) return 8;
  return rows.length % 4 == 0 ? 4 : 1;
}

// Calls launch_with(std::integral_constant<int, V>()) for that V.
template <typename LaunchWith>
void WithVector(int vector, const LaunchWith& launch_with) {
  if (vector == 8) {
    launch_with(std::integral_constant<int, 8>());
  } else if (vector == 4) {
    launch_with(std::integral_constant<int, 4>());
  } else {
    launch_with(std::integral_constant<int, 1>());
  }
}

// A row's elements are what lies in memory.
struct AsStored {
  template <int V>
  HT_DEVICE void operator()(float (&)[V]) const {}
};

// One row as a block sees it: what `Read` makes of what it loads.
template <typename Read>
struct RowOf {
  DType dtype;
  const void* data;
  int64_t offset, length, stride;
  Read read;

  HT_DEVICE RowOf(DType type, const void* tensor, const RowShape& rows,
                  int64_t row, const Read& made = {})
      : dtype(type),
        data(tensor),
        offset(rows.Offset(row)),
        length(rows.length),
        stride(rows.stride),
        read(made) {}

  HT_DEVICE float At(int64_t i) const {
    float x[1];
    Load(i, x);
    return x[0];
  }
  // visit(i, x) for this thread's vectors [i, i + V). Single elements are
  // loaded four at a time.
  template <int V, typename Visit>
  HT_DEVICE void ForEach(const Visit& visit) const {
    constexpr int kAhead = V == 1 ? 4 : 1;
    const int64_t step = blockDim.x * V;
    for (int64_t i = threadIdx.x * V; i < length; i += kAhead * step) {
      Raw raw[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const int64_t at = i + u * step;
        if (at < length) raw[u] = LoadRaw<V>(dtype, data, offset + at * stride);
      }
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const int64_t at = i + u * step;
        if (at >= length) break;
        float x[V];
        Unpack(dtype, raw[u], x);
        read(x);
        visit(at, x);
      }
    }
  }
  template <int V>
  HT_DEVICE void Load(int64_t i, float (&x)[V]) const {
    LoadVector(dtype, data, offset + i * stride, x);
    read(x);
  }
  // To the same place of a tensor of the same shape.
  template <int V>
  HT_DEVICE void Store(DType to_dtype, void* to, int64_t i,
                       const float (&x)[V]) const {
    StoreVector(to_dtype, to, offset + i * stride, x);
  }

  // The row's maximum, in all threads; NaNs left out.
  template <int V>
  HT_DEVICE float Maximum() const {
    float most = -functors::Infinity();
    ForEach<V>([&](int64_t, const float(&x)[V]) {
      for (int k = 0; k < V; ++k) most = Most()(most, x[k]);
    });
    return CombineBlock(most, -functors::Infinity(), Most());
  }
  // The sum of exp(x - maximum), in all threads.
  template <int V>
  HT_DEVICE float ExpSum(float maximum) const {
    float sum = 0;
    ForEach<V>([&](int64_t, const float(&x)[V]) {
      for (int k = 0; k < V; ++k) sum += functors::Exp(x[k] - maximum);
    });
    return CombineBlock(sum, 0.0f, Plus());
  }
};
using Row = RowOf<AsStored>;

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_ROWS_H_
