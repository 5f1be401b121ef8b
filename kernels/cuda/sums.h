// Sums over many elements per output, in one fixed order that the shapes alone
// decide: pieces are added by a block (or a warp) each, then the pieces.
//
// A Summand says what is added of x (and y):
//
//   struct Deviations {
//     static constexpr int kSums = 2, kInputs = 1;
//     static HT_DEVICE float First(float x, float y, float shift);
//     static HT_DEVICE float Second(float x, float y, float shift);
//     // Whether each piece is summed about its own first element, which is
//     // stored beside the two sums.
//     static constexpr bool kOwnShift = false;
//   };
#ifndef HALFTONE_KERNELS_CUDA_SUMS_H_
#define HALFTONE_KERNELS_CUDA_SUMS_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/block.h"
#include "kernels/cuda/index.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/vector.h"
#include "kernels/functors/norm.h"

namespace halftone {
namespace kernels {
namespace cuda {

// x itself.
struct PlainSum {
  static constexpr int kSums = 1, kInputs = 1;
  static constexpr bool kOwnShift = false;
  static HT_DEVICE float First(float x, float, float) { return x; }
  static HT_DEVICE float Second(float, float, float) { return 0.0f; }
};

// What is summed, and where it lies: element (output, summand, column) at
// kept(output) + reduced(summand) + column.
struct SumShape {
  int64_t outputs = 1, summands = 1;  // without columns
  int64_t columns = 1;  // neighbours in memory that are not added; else 1
  Loops kept, reduced;
  int vector = 1;  // vectors of so many stay within a run

  // Elements of a piece, and pieces of an output.
  int64_t length = 1, pieces = 0;

  // Of [rows][channels][inner], summed over rows and inner.
  static SumShape OfChannels(int64_t rows, int64_t channels, int64_t inner,
                             DType dtype);
  // Chooses length and pieces: about so many blocks.
  void Cut();

  HT_HOST_DEVICE int64_t partials() const { return outputs * pieces * columns; }
  // `kSums` sums each.
  int64_t workspace_floats(int sums) const { return sums * partials(); }
};

struct SumData {
  DType dtype;
  const void *x, *y = nullptr;
  const float* shift = nullptr;  // per output, or per column; null: 0
};

// Columns (or vectors of them) side by side and rows of a block.
HT_HOST_DEVICE inline int ColumnThreads(int64_t columns, int v) {
  int threads = 1;
  while (threads < 32 && threads * v < columns) threads *= 2;
  return threads;
}

// Blocks of a kernel each of which takes a piece and such columns.
inline int64_t ColumnBlocks(const SumShape& shape, int v) {
  return shape.outputs * shape.pieces *
         CeilDiv(shape.columns, ColumnThreads(shape.columns, v) * v);
}

namespace sums_internal {

// Sums about a shift become the mean less that shift and the sum of squared
// deviations.
HT_DEVICE void ToMoments(int64_t count, float& first, float& second) {
  const float m = first / static_cast<float>(count);
  const float m2 = second - first * m;
  first = m;
  second = m2 < 0.0f ? 0.0f : m2;  // a NaN stays one
}

// The sum over a warp or the block, in all of its threads.
template <int kGroup>
HT_DEVICE float CombineGroup(float value) {
  if constexpr (kGroup == kWarp) {
    return CombineWarp(value, Plus());
  } else {
    return CombineBlock(value, 0.0f, Plus());
  }
}

// What one thread of a ColumnKernel works on.
struct ColumnPlace {
  int across, down;  // threads beside and below each other
  int tx, ty;
  int64_t piece, column;     // a piece of all outputs' pieces
  int64_t begin, end, base;  // summands; offset of the output's column
  bool active;

  HT_DEVICE ColumnPlace(const SumShape& shape, int v)
      : across(ColumnThreads(shape.columns, v)),
        down(kThreads / across),
        tx(threadIdx.x % across),
        ty(threadIdx.x / across) {
    const int64_t blocks = CeilDiv(shape.columns, across * v);
    piece = blockIdx.x / blocks;
    column = (blockIdx.x % blocks * across + tx) * v;
    active = column < shape.columns;
    begin = piece % shape.pieces * shape.length;
    const int64_t rest = shape.summands - begin;
    end = begin + (rest < shape.length ? rest : shape.length);
    base = shape.kept.OffsetOf(piece / shape.pieces) + column;
  }
};

// Adds a thread's rows.
template <int V, typename Summand>
HT_DEVICE void AddRows(const SumShape& shape, const SumData& data,
                       const ColumnPlace& place, const float (&shift)[V],
                       float (&first)[V], float (&second)[V]) {
  constexpr int kLoads = 4;
  for (int64_t row = place.begin + place.ty; row < place.end;
       row += kLoads * place.down) {
    Raw x[kLoads], y[kLoads];
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
      if (row + u * place.down >= place.end) continue;
      const int64_t at =
          place.base + shape.reduced.OffsetOf(row + u * place.down);
      x[u] = LoadRaw<V>(data.dtype, data.x, at);
      if constexpr (Summand::kInputs > 1) {
        y[u] = LoadRaw<V>(data.dtype, data.y, at);
      }
    }
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
      if (row + u * place.down >= place.end) continue;
      float a[V], b[V];
      Unpack(data.dtype, x[u], a);
      if constexpr (Summand::kInputs > 1) Unpack(data.dtype, y[u], b);
#pragma unroll
      for (int k = 0; k < V; ++k) {
        if constexpr (Summand::kInputs == 1) b[k] = 0;
        first[k] += Summand::First(a[k], b[k], shift[k]);
        second[k] += Summand::Second(a[k], b[k], shift[k]);
      }
    }
  }
}

// Adds what the threads below each other have, pairwise; the result is in the
// threads of the first row.
template <int V, int kSums>
HT_DEVICE void AddDown(const ColumnPlace& place, float (&first)[V],
                       float (&second)[V]) {
  HT_SHARED(float[kSums][V][kThreads], shared);
  const int t = threadIdx.x;
#pragma unroll
  for (int k = 0; k < V; ++k) {
    shared[0][k][t] = first[k];
    if constexpr (kSums > 1) shared[1][k][t] = second[k];
  }
  __syncthreads();
  for (int half = place.down / 2; half > 0; half /= 2) {
    if (place.ty < half) {
#pragma unroll
      for (int k = 0; k < V; ++k) {
#pragma unroll
        for (int s = 0; s < kSums; ++s) {
          shared[s][k][t] += shared[s][k][t + half * place.across];
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int k = 0; k < V; ++k) {
    first[k] = shared[0][k][t];
    if constexpr (kSums > 1) second[k] = shared[1][k][t];
  }
}

// One block: a piece of one output and as many columns as its threads take.
// `partial` is [sums][outputs][pieces][columns].
template <int V, typename Summand>
__global__ void __launch_bounds__(kThreads)
    ColumnKernel(const __grid_constant__ SumShape shape,
                 const __grid_constant__ SumData data, float* partial) {
  const ColumnPlace place(shape, V);
  float first[V], second[V], shift[V];
#pragma unroll
  for (int k = 0; k < V; ++k) first[k] = second[k] = shift[k] = 0;
  if (place.active) {
    if constexpr (Summand::kOwnShift) {
      LoadVector(data.dtype, data.x,
                 place.base + shape.reduced.OffsetOf(place.begin), shift);
    } else if (data.shift != nullptr) {
      LoadFloats(data.shift, place.column, shift);
    }
    AddRows<V, Summand>(shape, data, place, shift, first, second);
  }
  AddDown<V, Summand::kSums>(place, first, second);
  if (place.ty != 0 || !place.active) return;
  float* to = partial + place.piece * shape.columns + place.column;
#pragma unroll
  for (int k = 0; k < V; ++k) {
    if constexpr (Summand::kOwnShift) {
      ToMoments(place.end - place.begin, first[k], second[k]);
      to[2 * shape.partials() + k] = shift[k];
    }
    to[k] = first[k];
    if constexpr (Summand::kSums > 1) to[shape.partials() + k] = second[k];
  }
}

// kGroup threads (a warp, or the block) for a piece of one output; no columns.
template <int V, int kGroup, typename Summand>
__global__ void __launch_bounds__(kThreads)
    RunKernel(const __grid_constant__ SumShape shape,
              const __grid_constant__ SumData data, float* partial) {
  const int64_t piece = static_cast<int64_t>(blockIdx.x) * (kThreads / kGroup) +
                        threadIdx.x / kGroup;
  const bool active = piece < shape.outputs * shape.pieces;
  const int64_t output = active ? piece / shape.pieces : 0;
  const int64_t begin = active ? piece % shape.pieces * shape.length : 0;
  const int64_t rest = active ? shape.summands - begin : 0;
  const int64_t count = rest < shape.length ? rest : shape.length;
  const int64_t base = shape.kept.OffsetOf(output);
  float shift = 0, first = 0, second = 0;
  if constexpr (Summand::kOwnShift) {
    const int64_t at = base + shape.reduced.OffsetOf(begin);
    if (active) shift = LoadOne(data.dtype, data.x, at);
  } else if (data.shift != nullptr) {
    shift = data.shift[output];
  }
  for (int64_t i = threadIdx.x % kGroup * V; i < count; i += kGroup * V) {
    const int64_t at = base + shape.reduced.OffsetOf(begin + i);
    float a[V], b[V];
    LoadVector(data.dtype, data.x, at, a);
    if constexpr (Summand::kInputs > 1) LoadVector(data.dtype, data.y, at, b);
#pragma unroll
    for (int k = 0; k < V; ++k) {
      if constexpr (Summand::kInputs == 1) b[k] = 0;
      first += Summand::First(a[k], b[k], shift);
      second += Summand::Second(a[k], b[k], shift);
    }
  }
  first = CombineGroup<kGroup>(first);
  if constexpr (Summand::kSums > 1) second = CombineGroup<kGroup>(second);
  if (!active || threadIdx.x % kGroup != 0) return;
  if constexpr (Summand::kOwnShift) {
    ToMoments(count, first, second);
    partial[2 * shape.partials() + piece] = shift;
  }
  partial[piece] = first;
  if constexpr (Summand::kSums > 1) partial[shape.partials() + piece] = second;
}

// The state of a combination: plain sums.
struct TwoSums {
  double a, b;
  static constexpr bool kShifted = false;
  static HT_DEVICE TwoSums None() { return {0, 0}; }
  static HT_DEVICE TwoSums From(float first, float second, float, int64_t) {
    return {static_cast<double>(first), static_cast<double>(second)};
  }
  HT_DEVICE void Take(const TwoSums& other) {
    a += other.a;
    b += other.b;
  }
};

// Mean and sum of squared deviations.
struct Moments {
  double a, b, count;
  static constexpr bool kShifted = true;
  static HT_DEVICE Moments None() { return {0, 0, 0}; }
  static HT_DEVICE Moments From(float mean, float m2, float shift,
                                int64_t count) {
    return {static_cast<double>(shift) + static_cast<double>(mean),
            static_cast<double>(m2), static_cast<double>(count)};
  }
  HT_DEVICE void Take(const Moments& other) {
    functors::Moments all = {a, b, count};
    all.Take(other.a, other.b, other.count);
    *this = {all.mean, all.m2, all.count};
  }
};

// Adds the pieces: 32 threads for an output (or column), 8 of them a block.
inline constexpr int kCombined = kThreads / kWarp;

template <typename State, int kSums, typename Finish>
__global__ void __launch_bounds__(kThreads)
    CombineKernel(const __grid_constant__ SumShape shape, const float* partial,
                  const __grid_constant__ Finish finish) {
  HT_SHARED(State[kThreads], shared);
  // Neighbouring threads read neighbours in memory.
  const bool columns = shape.columns > 1;
  const int lane = columns ? threadIdx.x / kCombined : threadIdx.x % kWarp;
  const int which = columns ? threadIdx.x % kCombined : threadIdx.x / kWarp;
  const int64_t output = static_cast<int64_t>(blockIdx.x) * kCombined + which;
  const bool active = output < shape.outputs * shape.columns;
  State state = State::None();
  if (active) {
    const float* from = partial +
                        output / shape.columns * shape.pieces * shape.columns +
                        output % shape.columns;
    for (int64_t p = lane; p < shape.pieces; p += kWarp) {
      const int64_t rest = shape.summands - p * shape.length;
      const float* at = from + p * shape.columns;
      state.Take(State::From(at[0], kSums > 1 ? at[shape.partials()] : 0.0f,
                             State::kShifted ? at[2 * shape.partials()] : 0.0f,
                             rest < shape.length ? rest : shape.length));
    }
  }
  State* own = shared + which * kWarp + lane;
  *own = state;
  __syncthreads();
  for (int half = kWarp / 2; half > 0; half /= 2) {
    if (lane < half) own->Take(own[half]);
    __syncthreads();
  }
  if (active && lane == 0) finish(output, *own);
}

template <int V, typename Summand>
void LaunchPieces(Launcher& launch, const SumShape& shape, const SumData& data,
                  float* partial) {
  const int64_t pieces = shape.outputs * shape.pieces;
  if (shape.columns > 1) {
    launch(ColumnKernel<V, Summand>, ColumnBlocks(shape, V), kThreads, shape,
           data, partial);
  } else if (shape.length <= 32 * kWarp) {
    launch(RunKernel<V, kWarp, Summand>, CeilDiv(pieces, kThreads / kWarp),
           kThreads, shape, data, partial);
  } else {
    launch(RunKernel<V, kThreads, Summand>, pieces, kThreads, shape, data,
           partial);
  }
}

}  // namespace sums_internal

// Adds the pieces of `kSums` sums, [sums][outputs][pieces][columns], and calls
// finish as Sum does.
template <typename State, int kSums, typename Finish>
void CombineSums(Launcher& launch, const SumShape& shape, const float* partial,
                 const Finish& finish) {
  launch(sums_internal::CombineKernel<State, kSums, Finish>,
         CeilDiv(shape.outputs * shape.columns, sums_internal::kCombined),
         kThreads, shape, partial, finish);
}

// A Finish: stores the first sum, rounded once.
struct StoreSum {
  DType dtype;
  void* out;

  template <typename State>
  HT_DEVICE void operator()(int64_t i, const State& state) const {
    StoreOne(dtype, out, i, static_cast<float>(state.a));
  }
};

// Calls finish(output, state) on the device for each output and column (output
// * columns + column), where state.a and state.b are the sums or, with an own
// shift, the mean and the sum of squared deviations of state.count.
template <typename Summand, typename Finish>
void Sum(Launcher& launch, const SumShape& shape, const SumData& data,
         void* workspace, const Finish& finish) {
  using sums_internal::LaunchPieces;
  using State = std::conditional_t<Summand::kOwnShift, sums_internal::Moments,
                                   sums_internal::TwoSums>;
  float* partial = static_cast<float*>(workspace);
  const bool aligned = Aligned({data.x, data.y, data.shift});
  const int vector =
      aligned ? std::min(shape.vector, VectorOf({data.dtype})) : 1;
  if (vector == 8) {
    LaunchPieces<8, Summand>(launch, shape, data, partial);
  } else if (vector == 4) {
    LaunchPieces<4, Summand>(launch, shape, data, partial);
  } else {
    LaunchPieces<1, Summand>(launch, shape, data, partial);
  }
  CombineSums<State, Summand::kSums>(launch, shape, partial, finish);
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CUDA_SUMS_H_
