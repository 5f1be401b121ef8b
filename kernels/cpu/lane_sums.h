// Sums over rows of channels, in registers: a part of channels.h.
#ifndef HALFTONE_KERNELS_CPU_LANE_SUMS_H_
#define HALFTONE_KERNELS_CPU_LANE_SUMS_H_

#include <cstdint>

#include "absl/base/attributes.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/wide_vector.h"

namespace halftone {
namespace kernels {
namespace channels_internal {

// Brings `n` elements of memory near.
template <typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void Fetch(const T* from, int64_t n) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t i = 0; i < n; i += kLine) __builtin_prefetch(from + i);
}

// Where sums over some channels of a tensor are, and what is summed.
template <typename T>
struct LaneSums {
  const T* x;
  const float* shift;
  float *first, *second;
};

// Those of some vectors of channels, in registers.
template <typename F, typename Low, int kVectors>
struct NearSums {
  using Vector = WideVector<Low::kSize>;
  Vector shift[kVectors], first[kVectors], second[kVectors];

  template <typename T>
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Load(const LaneSums<T>& of, int64_t c) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = c + v * Low::kSize;
      shift[v] = *reinterpret_cast<const Vector*>(of.shift + at);
      first[v] = *reinterpret_cast<const Vector*>(of.first + at);
      second[v] = *reinterpret_cast<const Vector*>(of.second + at);
    }
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Add(int v, const float* x, const float* y) {
    Vector a, b;
    F::Terms(*reinterpret_cast<const Vector*>(x),
             *reinterpret_cast<const Vector*>(y), shift[v], &a, &b);
    first[v] += a;
    second[v] += b;
  }
  template <typename T>
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Store(const LaneSums<T>& to,
                                          int64_t c) const {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = c + v * Low::kSize;
      *reinterpret_cast<Vector*>(to.first + at) = first[v];
      *reinterpret_cast<Vector*>(to.second + at) = second[v];
    }
  }
};

// Rows [first, end) of some channels of a tensor, `stride` elements apart; the
// first of all begins at element `at` and channel `channel`.
struct LaneRows {
  int64_t at, channel, channels, stride, first, end;
};

// Adds kVectors vectors of a row after the other, from channel `c` on, and then
// the next ones, as long as there are so many: of one tensor, or of two with
// the same y. As memory is read by columns, Lanes::kFetches has the rows behind
// these brought near in the order in which they lie.
template <typename F, Isa kIsa, int kVectors, bool kTwo, typename T,
          typename Lanes>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void AddLanes(const LaneSums<T>& sums,
                                                  const LaneSums<T>& more,
                                                  const Lanes& lanes,
                                                  const LaneRows& in,
                                                  int64_t* channel) {
  using Low = LowVector<kIsa>;
  constexpr int kTogether =
      kVectors < kMostTogether<kIsa, T> ? kVectors : kMostTogether<kIsa, T>;
  using Some = LowVectors<kIsa, kTogether>;
  constexpr int64_t kStep = kVectors * Low::kSize;
  int64_t c = *channel;
  int64_t next = in.end * in.stride, next_c = 0;
  for (; c + kStep <= in.channels; c += kStep) {
    NearSums<F, Low, kVectors> near, near_more;
    near.Load(sums, c);
    if constexpr (kTwo) near_more.Load(more, c);
    for (int64_t r = in.first; r < in.end; ++r) {
      const int64_t i = r * in.stride + c;
      if constexpr (Lanes::kFetches) {
        Fetch(sums.x + next + next_c, kStep);
        if constexpr (kTwo) Fetch(more.x + next + next_c, kStep);
        lanes.FetchAt(in.at + next + next_c, kStep);
        next_c += kStep;
        if (next_c >= in.channels) {
          next_c = 0;
          next += in.stride;
        }
      }
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; v += kTogether) {
        const int64_t k = v * Low::kSize;
        typename Some::Lanes x, y;
        Some::Load(sums.x + i + k, x);
        lanes.template At<Some>(in.at + i + k, in.channel + c + k, x, y);
#pragma GCC unroll 2
        for (int j = 0; j < kTogether; ++j) near.Add(v + j, x[j], y[j]);
        if constexpr (kTwo) {
          Some::Load(more.x + i + k, x);
#pragma GCC unroll 2
          for (int j = 0; j < kTogether; ++j) near_more.Add(v + j, x[j], y[j]);
        }
      }
    }
    near.Store(sums, c);
    if constexpr (kTwo) near_more.Store(more, c);
  }
  *channel = c;
}

}  // namespace channels_internal
}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_LANE_SUMS_H_
