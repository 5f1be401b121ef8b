// Element-wise kernels: every thread works on a few vectors, all of which it
// loads before it uses the first.
//
// A Body has, for each V, what it keeps between its two halves and the halves
// themselves, for elements [i, i + V):
//
//   template <int V> struct Loaded { Raw x; };
//   template <int V> HT_DEVICE void Load(int64_t i, Loaded<V>& loaded) const;
//   template <int V> HT_DEVICE void Finish(int64_t i, const Loaded<V>&) const;
#ifndef HALFTONE_KERNELS_CUDA_MAP_H_
#define HALFTONE_KERNELS_CUDA_MAP_H_

#include <cstdint>

#include "kernels/common/shapes.h"
#include "kernels/cuda/index.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/vector.h"

namespace halftone {
namespace kernels {
namespace cuda {

// Vectors of a thread where one is little work.
inline constexpr int kMapVectors = 4;

// n elements, of which the first `vectors` * V in vectors.
template <int V, int kVectors, typename Body>
__global__ void __launch_bounds__(kThreads)
    MapKernel(const __grid_constant__ Body body, int64_t vectors, int64_t n) {
  using Loaded = typename Body::template Loaded<V>;
  const int64_t first =
      static_cast<int64_t>(blockIdx.x) * (kThreads * kVectors) + threadIdx.x;
  Loaded loaded[kVectors];
#pragma unroll
  for (int u = 0; u < kVectors; ++u) {
    const int64_t v = first + u * kThreads;
    if (v < vectors) body.template Load<V>(v * V, loaded[u]);
  }
#pragma unroll
  for (int u = 0; u < kVectors; ++u) {
    const int64_t v = first + u * kThreads;
    if (v < vectors) body.template Finish<V>(v * V, loaded[u]);
  }
  if constexpr (V > 1) {
    const int64_t i = vectors * V + threadIdx.x;
    if (blockIdx.x == gridDim.x - 1 && i < n) {
      typename Body::template Loaded<1> rest;
      body.template Load<1>(i, rest);
      body.template Finish<1>(i, rest);
    }
  }
}

template <int V, int kVectors = kMapVectors, typename Body>
void LaunchMap(Launcher& launch, const Body& body, int64_t n) {
  const int64_t vectors = n / V;
  const int64_t blocks = CeilDiv(vectors, kThreads * kVectors);
  launch(MapKernel<V, kVectors, Body>, n > 0 && blocks == 0 ? 1 : blocks,
         kThreads, body, vectors, n);
}

// `vector`: 8 or 4 as VectorOf says, or 1 where pointers are not aligned.
template <int kVectors = kMapVectors, typename Body>
void Map(Launcher& launch, const Body& body, int64_t n, int vector) {
  if (vector == 8) {
    LaunchMap<8, kVectors>(launch, body, n);
  } else if (vector == 4) {
    LaunchMap<4, kVectors>(launch, body, n);
  } else {
    LaunchMap<1, kVectors>(launch, body, n);
  }
}

// Bodies with broadcast operands: vectors of 4.
template <typename Body>
void MapNarrow(Launcher& launch, const Body& body, int64_t n, bool aligned) {
  if (aligned) {
    LaunchMap<4>(launch, body, n);
  } else {
    LaunchMap<1>(launch, body, n);
  }
}

// ---- out = f(x). `out` may be x. X: FullOperand or Operand.
template <typename F, typename X>
struct UnaryBody {
  F f;
  X x;
  const void* x_data;
  DType out;
  void* out_data;

  template <int V>
  struct Loaded {
    Raw x;
  };
  template <int V>
  HT_DEVICE void Load(int64_t i, Loaded<V>& loaded) const {
    loaded.x = x.template Load<V>(x_data, i);
  }
  template <int V>
  HT_DEVICE void Finish(int64_t i, const Loaded<V>& loaded) const {
    float a[V];
    Unpack(x.dtype, loaded.x, a);
#pragma unroll
    for (int k = 0; k < V; ++k) a[k] = f(a[k]);
    StoreVector(out, out_data, i, a);
  }
};

template <typename F>
void MapUnary(Launcher& launch, DType in, const void* x, DType out,
              void* out_data, int64_t n, const F& f) {
  const int vector = Aligned({x, out_data}) ? VectorOf({in, out}) : 1;
  Map(launch, UnaryBody<F, FullOperand>{f, {in}, x, out, out_data}, n, vector);
}
// Broadcasting.
template <typename F>
void MapUnary(Launcher& launch, const Operand& x, const void* x_data, DType out,
              void* out_data, int64_t n, const F& f) {
  if (x.full) return MapUnary(launch, x.dtype, x_data, out, out_data, n, f);
  const UnaryBody<F, Operand> body{f, x, x_data, out, out_data};
  MapNarrow(launch, body, n, Aligned({x_data, out_data}));
}

// ---- out = f(x, y). `out` may be x or y.
template <typename F, typename Operand>
struct BinaryBody {
  F f;
  Operand x, y;
  const void *x_data, *y_data;
  DType out;
  void* out_data;

  template <int V>
  struct Loaded {
    Raw x, y;
  };
  template <int V>
  HT_DEVICE void Load(int64_t i, Loaded<V>& loaded) const {
    loaded.x = x.template Load<V>(x_data, i);
    loaded.y = y.template Load<V>(y_data, i);
  }
  template <int V>
  HT_DEVICE void Finish(int64_t i, const Loaded<V>& loaded) const {
    float a[V], b[V];
    Unpack(x.dtype, loaded.x, a);
    Unpack(y.dtype, loaded.y, b);
#pragma unroll
    for (int k = 0; k < V; ++k) a[k] = f(a[k], b[k]);
    StoreVector(out, out_data, i, a);
  }
};

template <typename F>
void MapBinary(Launcher& launch, DType x, const void* x_data, DType y,
               const void* y_data, DType out, void* out_data, int64_t n,
               const F& f) {
  const int vector =
      Aligned({x_data, y_data, out_data}) ? VectorOf({x, y, out}) : 1;
  Map(launch,
      BinaryBody<F, FullOperand>{f, {x}, {y}, x_data, y_data, out, out_data}, n,
      vector);
}
// Broadcasting.
template <typename F>
void MapBinary(Launcher& launch, const Operand& x, const void* x_data,
               const Operand& y, const void* y_data, DType out, void* out_data,
               int64_t n, const F& f) {
  if (x.full && y.full) {
    return MapBinary(launch, x.dtype, x_data, y.dtype, y_data, out, out_data, n,
                     f);
  }
  const BinaryBody<F, Operand> body{f, x, y, x_data, y_data, out, out_data};
  MapNarrow(launch, body, n, Aligned({x_data, y_data, out_data}));
}

// A kernel with one input that lies as the output does: make_functor(op) is
// asked at Prepare.
template <typename MakeFunctor>
Candidate UnaryCandidate(MakeFunctor make_functor) {
  Candidate candidate =
      CudaCandidate("vector", [make_functor](const BoundOp& op) {
        return [f = make_functor(op), in = op.inputs()[0].dtype,
                out = op.outputs()[0].dtype, n = op.outputs()[0].elements()](
                   const Buffers& buffers, Launcher& launch) {
          MapUnary(launch, in, buffers.inputs[0], out, buffers.outputs[0], n,
                   f);
        };
      });
  candidate.supports = HasOneLayout;
  return candidate;
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_MAP_H_
