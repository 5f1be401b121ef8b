// Sums over a gradient that is made on the way, for one norm or two that it is
// of, or for none: a bias. Added in the order of bn_grad_reduce and reduce_sum.
// Channels are innermost.
#ifndef HALFTONE_KERNELS_CUDA_NORM_SUMS_H_
#define HALFTONE_KERNELS_CUDA_NORM_SUMS_H_

#include <cstdint>

#include "kernels/cuda/norm.h"
#include "kernels/cuda/sums.h"

namespace halftone {
namespace kernels {
namespace cuda {

inline constexpr int kMostNorms = 2;
// For arrays: a kernel for a bias has no norms.
constexpr int AtLeastOne(int norms) { return norms > 0 ? norms : 1; }

// What was normalised, and its means.
struct NormSumsData {
  DType dtype;
  const void* x[kMostNorms];
  const float* mean[kMostNorms];
};

// What a thread adds up.
template <int V, int kNorms>
struct NormSums {
  float mean[AtLeastOne(kNorms)][V], first[AtLeastOne(kNorms)][V], second[V];

  HT_DEVICE explicit NormSums(const NormSumsData& data,
                              const sums_internal::ColumnPlace& place) {
#pragma unroll
    for (int k = 0; k < V; ++k) second[k] = 0;
#pragma unroll
    for (int j = 0; j < kNorms; ++j) {
      if (place.active) LoadFloats(data.mean[j], place.column, mean[j]);
#pragma unroll
      for (int k = 0; k < V; ++k) first[j][k] = 0;
    }
  }

  template <typename Row>
  HT_DEVICE void Add(DType dtype, const Row& row, const float (&g)[V]) {
#pragma unroll
    for (int k = 0; k < V; ++k) second[k] += NormGradSums::Second(0, g[k], 0);
#pragma unroll
    for (int j = 0; j < kNorms; ++j) {
      float x[V];
      Unpack(dtype, row.x[j], x);
#pragma unroll
      for (int k = 0; k < V; ++k) {
        first[j][k] += NormGradSums::First(x[k], g[k], mean[j][k]);
      }
    }
  }

  // Leaves those of the block in the threads of its first row.
  HT_DEVICE void AddThreads(const sums_internal::ColumnPlace& place) {
    float none[V] = {};
    if constexpr (kNorms == 0) {
      sums_internal::AddDown<V, 1>(place, second, none);
    } else {
      sums_internal::AddDown<V, 2>(place, first[0], second);
    }
    if constexpr (kNorms > 1) {
      sums_internal::AddDown<V, 1>(place, first[1], none);
    }
  }

  // `partial` is what CombineKernel takes: two sums by norm, or the bias's.
  HT_DEVICE void Store(const SumShape& shape,
                       const sums_internal::ColumnPlace& place,
                       float* partial) const {
    float* to = partial + place.piece * shape.columns + place.column;
    if constexpr (kNorms == 0) StoreSums(second, to);
#pragma unroll
    for (int j = 0; j < kNorms; ++j) {
      StoreSums(first[j], to + 2 * j * shape.partials());
      StoreSums(second, to + (2 * j + 1) * shape.partials());
    }
  }

 private:
  static HT_DEVICE void StoreSums(const float (&sums)[V], float* to) {
#pragma unroll
    for (int k = 0; k < V; ++k) to[k] = sums[k];
  }
};

// One block: a piece of the rows and as many channels as its threads take. A
// Row has V channels of a row, all of which is loaded before it makes the
// gradient, as that is stored:
//
//   struct Row {
//     using Data = ...;  // a NormSumsData
//     Raw x[kNorms];     // what is loaded of Data's x
//     HT_DEVICE void Load(const Data& data, int64_t at);
//     HT_DEVICE void MakeGrad(const Data& data, int64_t at,
//                             float (&g)[V]) const;
//   };
template <int V, int kNorms, typename Row>
__global__ void __launch_bounds__(kThreads)
    NormSumsKernel(const __grid_constant__ SumShape shape,
                   const __grid_constant__ typename Row::Data data,
                   float* partial) {
  constexpr int kLoads = 2;
  const sums_internal::ColumnPlace place(shape, V);
  NormSums<V, kNorms> sums(data, place);
  const int64_t end = place.active ? place.end : place.begin;
  for (int64_t row = place.begin + place.ty; row < end;
       row += kLoads * place.down) {
    Row rows[kLoads];
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
      const int64_t own = row + u * place.down;
      if (own < end) rows[u].Load(data, own * shape.columns + place.column);
    }
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
      const int64_t own = row + u * place.down;
      if (own >= end) continue;
      float g[V];
      rows[u].MakeGrad(data, own * shape.columns + place.column, g);
      sums.Add(data.dtype, rows[u], g);
    }
  }
  sums.AddThreads(place);
  if (place.ty == 0 && place.active) sums.Store(shape, place, partial);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_NORM_SUMS_H_
