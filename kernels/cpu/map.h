// Element-wise kernels from functors: blocks of f32, one pass.
#ifndef HALFTONE_KERNELS_CPU_MAP_H_
#define HALFTONE_KERNELS_CPU_MAP_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/operand.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/kernel.h"

namespace halftone {
namespace kernels {

// Elements that one thread takes at least: below that the threads' start
// costs more than it saves.
inline constexpr int64_t kMapGrain = 32 * kConvertBlock;

// Calls body(begin, n) for each block of [begin, end).
template <typename Body>
inline void ForBlocks(int64_t begin, int64_t end, const Body& body) {
  for (int64_t i = begin; i < end; i += kConvertBlock) {
    body(i, std::min(kConvertBlock, end - i));
  }
}

// Whether F has a faster form, F::Near, for arguments of which F::IsNear says
// so (kernels/functors/trigonometry.h).
template <typename F, typename = void>
struct HasNear : std::false_type {};
template <typename F>
struct HasNear<F, std::void_t<decltype(&F::IsNear)>> : std::true_type {};

// Whether F has a form for the bits of f16 and bf16 alike.
template <typename F, typename = void>
struct HasOfBits : std::false_type {};
template <typename F>
struct HasOfBits<F, std::void_t<decltype(F::OfBits(uint16_t()))>>
    : std::true_type {};

// Whether F computes in f64 (kernels/functors/power.h).
template <typename F, typename = void>
struct IsInDouble : std::false_type {};
template <typename F>
struct IsInDouble<F, std::enable_if_t<F::kInDouble>> : std::true_type {};

// F's form for results of 16 bits (kernels/functors/gelu.h); F, if it has none.
// All kernels of an op take the same one.
template <typename F, typename = void>
struct OfLow {
  using type = F;
};
template <typename F>
struct OfLow<F, std::void_t<typename F::Low>> {
  using type = typename F::Low;
};

namespace map_internal {
// apply(f), or of its faster form if all of n arguments are near. For bodies of
// ForIsa (isa.h).
template <typename F, typename Apply, typename... X>
inline void ApplyNear(const F& f, const Apply& apply, int64_t n,
                      const X*... x) {
  if constexpr (HasNear<F>::value) {
    int far = 0;
#pragma GCC unroll 1
    for (int64_t i = 0; i < n; ++i) far |= f.IsNear(x[i]...) ? 0 : 1;
    if (far == 0) return apply([=](auto... v) { return f.Near(v...); });
  }
  apply(f);
}
}  // namespace map_internal

// out[i] = f(x[i]) of a block. `out` may be x.
template <typename F>
void ApplyUnary(const F& f, const float* x, float* out, int64_t n) {
  ForIsa([=] {
    const auto apply = [=](const auto& g) {
#pragma GCC ivdep
#pragma GCC unroll 4
      for (int64_t i = 0; i < n; ++i) out[i] = g(x[i]);
    };
    map_internal::ApplyNear(f, apply, n, x);
  });
}

// out[i] = f(x[i], y[i]) of a block. `out` may be either.
template <typename F>
void ApplyBinary(const F& f, const float* x, const float* y, float* out,
                 int64_t n) {
  ForIsa([=] {
    const auto apply = [=](const auto& g) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = g(x[i], y[i]);
    };
    map_internal::ApplyNear(f, apply, n, x, y);
  });
}

namespace map_internal {
// A vector of 16-bit elements, converted in registers.
template <typename Low, typename T, typename F, typename... X>
inline void MapVector(const F& f, T* out, const X*... x) {
  constexpr int kSize = Low::kSize;
  float in[sizeof...(X)][kSize], made[kSize];
  int k = 0;
  (Low::Load(x, in[k++]), ...);
  const auto apply = [&](const auto& g) {
#pragma GCC ivdep
#pragma GCC unroll 1  // else it becomes no vector
    for (int i = 0; i < kSize; ++i) {
      if constexpr (sizeof...(X) == 1) {
        made[i] = g(in[0][i]);
      } else {
        made[i] = g(in[0][i], in[1][i]);
      }
    }
  };
  if constexpr (sizeof...(X) == 1) {
    ApplyNear(f, apply, kSize, in[0]);
  } else {
    ApplyNear(f, apply, kSize, in[0], in[1]);
  }
  Low::Store(made, out);
}
template <typename Low, typename T, typename F, typename... X>
inline void MapVectors(const F f, int64_t n, T* out, const X*... x) {
  for (int64_t i = 0; i < n; i += Low::kSize) {
    MapVector<Low>(f, out + i, (x + i)...);
  }
}
}  // namespace map_internal

// out[i] = f(x[i], ...) of tensors of a 16-bit dtype from `begin` on, in whole
// vectors where that is worth it; where the rest of [begin, end) begins. `out`
// may be an x.
template <typename F, typename... X>
int64_t MapLow(DType dtype, const F& f, int64_t begin, int64_t end, void* out,
               const X*... x) {
  if (IsInDouble<F>::value || HostIsa() == Isa::kBaseline) return begin;
  constexpr int64_t kMost = LowVector<Isa::kAvx512>::kSize;
  const int64_t n = (end - begin) / kMost * kMost;
  const auto map = [=](auto zero) {
    using T = decltype(zero);
    T* to = static_cast<T*>(out) + begin;
    ForIsa([=](auto isa) {
      if constexpr (isa != Isa::kBaseline && !IsInDouble<F>::value) {
        using Low = LowVector<decltype(isa)::value>;
        map_internal::MapVectors<Low>(f, n, to,
                                      (static_cast<const T*>(x) + begin)...);
      }
    });
  };
  dtype == DType::kF16 ? map(half()) : map(bfloat16());
  return begin + n;
}

// out[i] = F::OfBits(x[i]) of whole tensors of 16 bits. `out` may be x.
template <typename F>
void MapBits(const void* x, void* out, int64_t begin, int64_t end) {
  const auto* from = static_cast<const uint16_t*>(x);
  auto* to = static_cast<uint16_t*>(out);
  ForIsa([=] {
#pragma GCC ivdep
#pragma GCC unroll 4
    for (int64_t i = begin; i < end; ++i) to[i] = F::OfBits(from[i]);
  });
}

// Makes a tensor of an operand, whatever its dtype: block(x, to, n) for blocks
// of f32 and, of whole tensors of 16 bits, low(begin, end) before that, which
// says where the rest begins. `out` may be x.
template <typename Low, typename Block>
void MapOperand(const Operand& x, const void* x_data, DType out, void* out_data,
                int64_t elements, int threads, const Low& low,
                const Block& block) {
  ParallelFor(threads, elements, kMapGrain, [&](int64_t begin, int64_t end) {
    if (IsLow(out) && x.IsWhole(out)) begin = low(begin, end);
    OperandReader reader(x, x_data, end - begin);
    alignas(64) float buffer[kConvertBlock];
    ForBlocks(begin, end, [&](int64_t at, int64_t n) {
      const float* from = reader.Block(at, n);
      float* to = OutputBlock(out, out_data, at, buffer);
      block(from, to, n);
      StoreBlock(out, to, out_data, at, n);
    });
  });
}

// out = f(x). `out` may be x.
template <typename F>
void MapUnary(const Operand& x, const void* x_data, DType out, void* out_data,
              int64_t elements, int threads, const F& f) {
  MapOperand(
      x, x_data, out, out_data, elements, threads,
      [&](int64_t begin, int64_t end) {
        return MapLow(out, f, begin, end, out_data, x_data);
      },
      [&](const float* from, float* to, int64_t n) {
        ApplyUnary(f, from, to, n);
      });
}

// MapOperand of two: block(x, y, to, n).
template <typename Low, typename Block>
void MapOperands(const Operand& x, const void* x_data, const Operand& y,
                 const void* y_data, DType out, void* out_data,
                 int64_t elements, int threads, const Low& low,
                 const Block& block) {
  ParallelFor(threads, elements, kMapGrain, [&](int64_t begin, int64_t end) {
    if (IsLow(out) && x.IsWhole(out) && y.IsWhole(out)) begin = low(begin, end);
    OperandReader x_reader(x, x_data, end - begin);
    OperandReader y_reader(y, y_data, end - begin);
    alignas(64) float buffer[kConvertBlock];
    ForBlocks(begin, end, [&](int64_t at, int64_t n) {
      const float* a = x_reader.Block(at, n);
      const float* b = y_reader.Block(at, n);
      float* to = OutputBlock(out, out_data, at, buffer);
      block(a, b, to, n);
      StoreBlock(out, to, out_data, at, n);
    });
  });
}

// out = f(x, y). `out` may be x or y.
template <typename F>
void MapBinary(const Operand& x, const void* x_data, const Operand& y,
               const void* y_data, DType out, void* out_data, int64_t elements,
               int threads, const F& f) {
  MapOperands(
      x, x_data, y, y_data, out, out_data, elements, threads,
      [&](int64_t begin, int64_t end) {
        return MapLow(out, f, begin, end, out_data, x_data, y_data);
      },
      [&](const float* a, const float* b, float* to, int64_t n) {
        ApplyBinary(f, a, b, to, n);
      });
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_MAP_H_
