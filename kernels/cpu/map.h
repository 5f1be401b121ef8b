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
#include "kernels/cpu/streamed_output.h"
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

// Whether F's result is a function of its second argument, or 0. AVX-512 makes
// of that a load that waits for the first one, so that memory is waited for
// twice; AVX2 loads both.
template <typename F, typename = void>
struct Selects : std::false_type {};
template <typename F>
struct Selects<F, std::enable_if_t<F::kSelects>> : std::true_type {};

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
  const auto body = [=] {
    const auto apply = [=](const auto& g) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = g(x[i], y[i]);
    };
    map_internal::ApplyNear(f, apply, n, x, y);
  };
  if constexpr (Selects<F>::value) {
    ForEights(body);
  } else {
    ForIsa(body);
  }
}

namespace map_internal {
// out[i] = f(x[i], ...) of a vector.
template <typename Low, typename F, typename... X>
inline void MapLanes(const F& f, float* out, const X*... x) {
  constexpr int kSize = Low::kSize;
  const auto apply = [&](const auto& g, auto* to) {
#pragma GCC ivdep
#pragma GCC unroll 1  // else it becomes no vector
    for (int i = 0; i < kSize; ++i) to[i] = g(x[i]...);
  };
  if constexpr (HasNear<F>::value) {
    int32_t far[kSize];
    apply([&](auto... v) { return f.IsNear(v...) ? 0 : 1; }, far);
    if (!Low::IsAny(far)) {
      return apply([&](auto... v) { return f.Near(v...); }, out);
    }
  }
  apply(f, out);
}
// The same of a LowVectors of 16-bit elements, converted in registers.
template <typename Some, typename T, typename F, typename... X>
inline void MapVectors(const F& f, T* out, const X*... x) {
  typename Some::Lanes in[sizeof...(X)], made;
  int k = 0;
  (Some::Load(x, in[k++]), ...);
#pragma GCC unroll 2
  for (int v = 0; v < Some::kVectors; ++v) {
    if constexpr (sizeof...(X) == 1) {
      MapLanes<typename Some::Low>(f, made[v], in[0][v]);
    } else {
      MapLanes<typename Some::Low>(f, made[v], in[0][v], in[1][v]);
    }
  }
  Some::Store(made, out);
}
template <typename Some, typename T, typename F, typename... X>
inline void MapRun(const F f, int64_t n, T* out, const X*... x) {
  for (int64_t i = 0; i < n; i += Some::kElements) {
    MapVectors<Some>(f, out + i, (x + i)...);
  }
}
}  // namespace map_internal

// to[k] = f(x[at + k], ...) of tensors of a 16-bit dtype, in whole vectors
// where that is worth it; how many of n elements it made. `to` may be where an
// x is.
template <typename F, typename... X>
int64_t MapLow(DType dtype, const F& f, int64_t at, int64_t n, void* to,
               const X*... x) {
  if (IsInDouble<F>::value || HostIsa() == Isa::kBaseline) return 0;
  constexpr int64_t kMost = 32;  // elements at a time
  n = n / kMost * kMost;
  const auto map = [=](auto zero) {
    using T = decltype(zero);
    ForIsa([=](auto isa) {
      if constexpr (isa != Isa::kBaseline && !IsInDouble<F>::value) {
        constexpr Isa kIsa = decltype(isa)::value;
        using Some = LowVectors<kIsa, kMostTogether<kIsa, T>>;
        map_internal::MapRun<Some>(f, n, static_cast<T*>(to),
                                   (static_cast<const T*>(x) + at)...);
      }
    });
  };
  dtype == DType::kF16 ? map(half()) : map(bfloat16());
  return n;
}

// to[k] = F::OfBits(x[at + k]) of whole tensors of 16 bits. `to` may be where x
// is.
template <typename F>
void MapBits(const void* x, int64_t at, int64_t n, void* to) {
  const auto* from = static_cast<const uint16_t*>(x) + at;
  auto* made = static_cast<uint16_t*>(to);
  ForIsa([=] {
#pragma GCC ivdep
#pragma GCC unroll 4
    for (int64_t i = 0; i < n; ++i) made[i] = F::OfBits(from[i]);
  });
}

// Makes a tensor of an operand, whatever its dtype: block(x, to, n) for blocks
// of f32 and, of whole tensors of 16 bits, low(at, n, to) before that, which
// says how many elements from `at` on it made. `out` may be x.
template <typename Low, typename Block>
void MapOperand(const Operand& x, const void* x_data, DType out, void* out_data,
                int64_t elements, int threads, const Low& low,
                const Block& block) {
  const bool is_low = IsLow(out) && x.IsWhole(out);
  const StreamedOutput output(out_data, out, elements, out_data == x_data);
  ParallelFor(threads, elements, kMapGrain, [&](int64_t begin, int64_t end) {
    OperandReader reader(x, x_data, end - begin);
    alignas(64) float buffer[kConvertBlock];
    output.Write(begin, end, [&](int64_t first, int64_t count, void* made) {
      const int64_t done = is_low ? low(first, count, made) : 0;
      ForBlocks(done, count, [&](int64_t i, int64_t n) {
        const float* from = reader.Block(first + i, n);
        float* to = OutputBlock(out, made, i, buffer);
        block(from, to, n);
        StoreBlock(out, to, made, i, n);
      });
    });
  });
}

// out = f(x). `out` may be x.
template <typename F>
void MapUnary(const Operand& x, const void* x_data, DType out, void* out_data,
              int64_t elements, int threads, const F& f) {
  MapOperand(
      x, x_data, out, out_data, elements, threads,
      [&](int64_t at, int64_t n, void* to) {
        return MapLow(out, f, at, n, to, x_data);
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
  const bool is_low = IsLow(out) && x.IsWhole(out) && y.IsWhole(out);
  const StreamedOutput output(out_data, out, elements,
                              out_data == x_data || out_data == y_data);
  ParallelFor(threads, elements, kMapGrain, [&](int64_t begin, int64_t end) {
    OperandReader x_reader(x, x_data, end - begin);
    OperandReader y_reader(y, y_data, end - begin);
    alignas(64) float buffer[kConvertBlock];
    output.Write(begin, end, [&](int64_t first, int64_t count, void* made) {
      const int64_t done = is_low ? low(first, count, made) : 0;
      ForBlocks(done, count, [&](int64_t i, int64_t n) {
        const float* a = x_reader.Block(first + i, n);
        const float* b = y_reader.Block(first + i, n);
        float* to = OutputBlock(out, made, i, buffer);
        block(a, b, to, n);
        StoreBlock(out, to, made, i, n);
      });
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
      [&](int64_t at, int64_t n, void* to) {
        return MapLow(out, f, at, n, to, x_data, y_data);
      },
      [&](const float* a, const float* b, float* to, int64_t n) {
        ApplyBinary(f, a, b, to, n);
      });
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_MAP_H_
