// Functions of one number of 16 bits by their results for all 65,536: looking
// one up takes some 20 cycles for a vector of 16 where the tensor's numbers are
// alike, as a network's are. Made at Prepare; ops of one function share it.
#ifndef HALFTONE_KERNELS_CPU_LOW_TABLE_H_
#define HALFTONE_KERNELS_CPU_LOW_TABLE_H_

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeindex>
#include <typeinfo>
#include <vector>

#include "absl/base/attributes.h"
#include "graph/base/dtype.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_vector.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/operand.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/cpu/wide_vector.h"

namespace halftone {
namespace kernels {

// F::kIsLong: it takes longer than a look-up (kernels/functors/math.h).
template <typename F, typename = void>
struct IsLong : std::false_type {};
template <typename F>
struct IsLong<F, std::enable_if_t<F::kIsLong>> : std::true_type {};

inline constexpr int64_t kLowPatterns = 1 << 16;

// Tensors of fewer elements are computed.
inline constexpr int64_t kLeastForTable = kLowPatterns;

// A result per pattern of bits, as bits of the dtype or as f32.
using LowTable = std::shared_ptr<const std::vector<uint16_t>>;
using LowParts = std::shared_ptr<const std::vector<float>>;

namespace low_table_internal {
// A function: its type, what it takes, and its settings' bytes.
using FunctionName = std::tuple<std::type_index, DType, std::string>;
// The function's table, made by make(patterns, results) unless some op has it:
// both of 65,536 elements.
template <typename T>
std::shared_ptr<const std::vector<T>> Shared(
    const FunctionName& name,
    const std::function<void(const uint16_t*, T*)>& make);
}  // namespace low_table_internal

// The table of f(x), as T, for a tensor x of `dtype`; null where f is to be
// computed: it is short, or the tensor is small or broadcast, or there are no
// vectors of 16 bits.
template <typename T, typename F>
std::shared_ptr<const std::vector<T>> MakeLowTable(const Operand& x,
                                                   DType dtype,
                                                   int64_t elements,
                                                   const F& f) {
  if constexpr (!IsLong<F>::value) return nullptr;
  if (!IsLow(dtype) || !x.IsWhole(dtype) || elements < kLeastForTable ||
      HostIsa() == Isa::kBaseline) {
    return nullptr;
  }
  static_assert(std::is_trivially_copyable<F>::value, "its bytes are its name");
  std::string settings;
  if constexpr (!std::is_empty<F>::value) {
    settings.assign(reinterpret_cast<const char*>(&f), sizeof(F));
  }
  constexpr bool kAsFloat = std::is_same<T, float>::value;
  return low_table_internal::Shared<T>(
      {typeid(F), dtype, settings}, [&](const uint16_t* patterns, T* results) {
        MapUnary(x, patterns, kAsFloat ? DType::kF32 : dtype, results,
                 kLowPatterns, 1, f);
      });
}

// out[i] = table[x[i]]. `out` may be x.
void LookUp(const LowTable& table, const void* x, void* out, int64_t elements,
            int threads);

namespace low_table_internal {
// table[x[k]] for a vector, gathered in registers: a load right behind stores
// of its parts would wait for them.
template <Isa kIsa>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void Gather(const float* table,
                                                const uint16_t* x, float* to) {
  constexpr int kSize = LowVector<kIsa>::kSize;
  uint64_t words[kSize / 4];
  std::memcpy(words, x, sizeof(words));
  const auto at = [&](int k) {
    return table[(words[k / 4] >> (16 * (k % 4))) & 0xffff];
  };
  using Vector = WideVector<kSize>;
  Vector made;
  if constexpr (kSize == 8) {
    made = Vector{at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)};
  } else {
    static_assert(kSize == 16, "a vector of LowVector");
    made = Vector{at(0), at(1), at(2),  at(3),  at(4),  at(5),  at(6),  at(7),
                  at(8), at(9), at(10), at(11), at(12), at(13), at(14), at(15)};
  }
#ifdef HT_ISA_X86
  if constexpr (kIsa != Isa::kBaseline) asm("" : "+v"(made));  // not its parts
#endif
  *reinterpret_cast<Vector*>(to) = made;
}

template <Isa kIsa, typename T, typename F, typename... X>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void MapVector(const F& f,
                                                   const float* table,
                                                   const T* key, T* out,
                                                   const X*... x) {
  using Low = LowVector<kIsa>;
  constexpr int kSize = Low::kSize;
  float part[kSize], in[sizeof...(X)][kSize], made[kSize];
  Gather<kIsa>(table, reinterpret_cast<const uint16_t*>(key), part);
  int n = 0;
  (Low::Load(x, in[n++]), ...);
#pragma GCC ivdep
#pragma GCC unroll 1  // else it becomes no vector
  for (int i = 0; i < kSize; ++i) {
    if constexpr (sizeof...(X) == 2) {
      made[i] = f(part[i], in[0][i], in[1][i]);
    } else {
      made[i] = f(part[i], in[0][i], in[1][i], in[2][i]);
    }
  }
  Low::Store(made, out);
}

template <Isa kIsa, typename T, typename F, typename... X>
inline void MapRun(const F& f, const float* table, const T* key, T* out,
                   int64_t begin, int64_t end, const X*... x) {
  constexpr int64_t kSize = LowVector<kIsa>::kSize;
  int64_t i = begin;
  for (; i + kSize <= end; i += kSize) {
    MapVector<kIsa>(f, table, key + i, out + i, (x + i)...);
  }
  for (; i < end; ++i) {
    uint16_t place;
    std::memcpy(&place, key + i, sizeof(place));
    out[i] = static_cast<T>(f(table[place], static_cast<float>(x[i])...));
  }
}
}  // namespace low_table_internal

// out[i] = f(table[key[i]], x[i], ...), rounded once, of tensors of a 16-bit
// dtype, two or three `x`. `out` may be any of them.
template <typename F, typename... X>
void MapWithTable(DType dtype, const F& f, const LowParts& table,
                  const void* key, void* out, int64_t elements, int threads,
                  const X*... x) {
  const auto map = [&](auto zero) {
    using T = decltype(zero);
    ParallelFor(threads, elements, kMapGrain, [&](int64_t begin, int64_t end) {
      ForIsa([=, parts = table->data()](auto isa) {
        if constexpr (isa != Isa::kBaseline) {
          low_table_internal::MapRun<decltype(isa)::value>(
              f, parts, static_cast<const T*>(key), static_cast<T*>(out), begin,
              end, static_cast<const T*>(x)...);
        }
      });
    });
  };
  dtype == DType::kF16 ? map(half()) : map(bfloat16());
}

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_LOW_TABLE_H_
