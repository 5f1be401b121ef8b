#include "runtime/collective/reduce.h"

#include <type_traits>

#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/half.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace halftone {
namespace runtime {
namespace {

struct Sum {
  template <typename T>
  static T Apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {  // unsigned: overflow wraps
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    } else {
      return a + b;
    }
  }
};
// `a != a` only for NaN, which then wins.
struct Max {
  template <typename T>
  static T Apply(T a, T b) {
    return a > b || a != a ? a : b;
  }
};
struct Min {
  template <typename T>
  static T Apply(T a, T b) {
    return a < b || a != a ? a : b;
  }
};

// Arithmetic of a 16-bit type is f32's, rounded once.
template <typename T>
using Wide =
    std::conditional_t<std::is_same_v<T, half> || std::is_same_v<T, bfloat16>,
                       float, T>;

template <typename T, typename Op>
inline __attribute__((always_inline)) void Loop(void* out, const void* a,
                                                const void* b, int64_t count) {
  T* to = static_cast<T*>(out);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  const auto apply = [=](int64_t i) __attribute__((always_inline)) {
    to[i] = static_cast<T>(
        Op::Apply(static_cast<Wide<T>>(x[i]), static_cast<Wide<T>>(y[i])));
  };
  // Compilers make vectors of loops of a known length at -O2, too.
  constexpr int64_t kPiece = 64;
  int64_t i = 0;
  for (; i + kPiece <= count; i += kPiece) {
    // Element-wise, so that `out` being `a` or `b` is no dependence.
#pragma GCC ivdep
    for (int64_t k = 0; k < kPiece; ++k) apply(i + k);
  }
  for (; i < count; ++i) apply(i);
}

template <typename T>
inline __attribute__((always_inline)) void ScaleLoop(void* data, float scale,
                                                     int64_t count) {
  T* x = static_cast<T*>(data);
  for (int64_t i = 0; i < count; ++i) {
    x[i] = static_cast<T>(static_cast<Wide<T>>(x[i]) * scale);
  }
}

template <typename T, typename Op>
void Portable(void* out, const void* a, const void* b, int64_t count) {
  Loop<T, Op>(out, a, b, count);
}

template <typename T>
void PortableScale(void* data, float scale, int64_t count) {
  ScaleLoop<T>(data, scale, count);
}

#if defined(__x86_64__)

// The same source for wider registers: integer steps and single additions, so
// the bits are the same.
template <typename T, typename Op>
__attribute__((target("avx2"))) void Avx2(void* out, const void* a,
                                          const void* b, int64_t count) {
  Loop<T, Op>(out, a, b, count);
}
template <typename T, typename Op>
__attribute__((
    target("avx512f,avx512bw,avx512vl,prefer-vector-width=512"))) void
Avx512(void* out, const void* a, const void* b, int64_t count) {
  Loop<T, Op>(out, a, b, count);
}

template <typename T>
__attribute__((target("avx2"))) void Avx2Scale(void* data, float scale,
                                               int64_t count) {
  ScaleLoop<T>(data, scale, count);
}

#define HT_LANES \
  __attribute__((target("avx2,f16c"), always_inline)) static inline

// Eight elements as f32, by the processor's conversions, which round to nearest
// even and keep NaN's sign and upper payload like half_internal::FloatToHalf.
struct HalfLanes {
  HT_LANES __m256 Load(const half* from) {
    return _mm256_cvtph_ps(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  HT_LANES void Store(half* to, __m256 x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                     _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }
};

// The steps of half_internal::FloatToBFloat16.
struct BFloat16Lanes {
  HT_LANES __m256 Load(const bfloat16* from) {
    const __m128i bits =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  HT_LANES void Store(bfloat16* to, __m256 x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i high = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_srli_epi32(
        _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)),
                         odd),
        16);
    const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    const __m256i is_nan =
        _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    const __m256i words = _mm256_blendv_epi8(rounded, quiet, is_nan);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                     _mm_packus_epi32(_mm256_castsi256_si128(words),
                                      _mm256_extracti128_si256(words, 1)));
  }
};
#undef HT_LANES

template <typename T>
using LanesOf =
    std::conditional_t<std::is_same_v<T, half>, HalfLanes, BFloat16Lanes>;

template <typename T>
__attribute__((target("avx2,f16c"))) void LowSum(void* out, const void* a,
                                                 const void* b, int64_t count) {
  T* to = static_cast<T*>(out);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    LanesOf<T>::Store(to + i, _mm256_add_ps(LanesOf<T>::Load(x + i),
                                            LanesOf<T>::Load(y + i)));
  }
  Loop<T, Sum>(to + i, x + i, y + i, count - i);
}

template <typename T>
__attribute__((target("avx2,f16c"))) void LowScale(void* data, float scale,
                                                   int64_t count) {
  T* x = static_cast<T*>(data);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    LanesOf<T>::Store(
        x + i, _mm256_mul_ps(LanesOf<T>::Load(x + i), _mm256_set1_ps(scale)));
  }
  ScaleLoop<T>(x + i, scale, count - i);
}

bool HasLowLanes() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
}

bool HasAvx512() {
  return __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl");
}

template <typename T, typename Op>
ReduceFunction Fastest() {
  if constexpr (!std::is_same_v<T, Wide<T>> && std::is_same_v<Op, Sum>) {
    if (HasLowLanes()) return LowSum<T>;
  }
  if (HasAvx512()) return Avx512<T, Op>;
  if (__builtin_cpu_supports("avx2")) return Avx2<T, Op>;
  return Portable<T, Op>;
}

template <typename T>
ScaleFunction FastestScale() {
  if constexpr (!std::is_same_v<T, Wide<T>>) {
    if (HasLowLanes()) return LowScale<T>;
  }
  return __builtin_cpu_supports("avx2") ? Avx2Scale<T> : PortableScale<T>;
}

#else

template <typename T, typename Op>
ReduceFunction Fastest() {
  return Portable<T, Op>;
}
template <typename T>
ScaleFunction FastestScale() {
  return PortableScale<T>;
}

#endif  // __x86_64__

template <typename T, typename Op>
ReduceFunction Choose(bool portable) {
  return portable ? Portable<T, Op> : Fastest<T, Op>();
}

template <typename T>
ReduceFunction ForOp(ReduceOp op, bool portable) {
  switch (op) {
    case ReduceOp::kSum:
      return Choose<T, Sum>(portable);
    case ReduceOp::kMax:
      return Choose<T, Max>(portable);
    case ReduceOp::kMin:
      return Choose<T, Min>(portable);
  }
  return nullptr;
}

absl::StatusOr<ReduceFunction> Find(DType dtype, ReduceOp op, bool portable) {
  switch (dtype) {
    case DType::kF32:
      return ForOp<float>(op, portable);
    case DType::kF16:
      return ForOp<half>(op, portable);
    case DType::kBF16:
      return ForOp<bfloat16>(op, portable);
    case DType::kF64:
      return ForOp<double>(op, portable);
    case DType::kI32:
      return ForOp<int32_t>(op, portable);
    case DType::kI64:
      return ForOp<int64_t>(op, portable);
    case DType::kU8:
      return ForOp<uint8_t>(op, portable);
    default:
      return CompilerBug("all_reduce of ", Name(dtype),
                         ": not a type that is reduced");
  }
}

}  // namespace

absl::StatusOr<ReduceFunction> FindReduceFunction(DType dtype, ReduceOp op) {
  return Find(dtype, op, /*portable=*/false);
}

absl::StatusOr<ReduceFunction> FindPortableReduceFunction(DType dtype,
                                                          ReduceOp op) {
  return Find(dtype, op, /*portable=*/true);
}

ScaleFunction FindScaleFunction(DType dtype, ReduceOp op) {
  if (op != ReduceOp::kSum) return nullptr;
  switch (dtype) {
    case DType::kF32:
      return FastestScale<float>();
    case DType::kF16:
      return FastestScale<half>();
    case DType::kBF16:
      return FastestScale<bfloat16>();
    case DType::kF64:
      return FastestScale<double>();
    default:
      return nullptr;
  }
}

absl::StatusOr<ReduceArithmetic> FindReduceArithmetic(DType dtype, ReduceOp op,
                                                      float pre_scale) {
  ReduceArithmetic how;
  HT_ASSIGN_OR_RETURN(how.reduce, FindReduceFunction(dtype, op));
  if (pre_scale != 1) how.scale = FindScaleFunction(dtype, op);
  how.pre_scale = pre_scale;
  how.element_bytes = SizeOf(dtype);
  return how;
}

absl::string_view Name(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kMin:
      return "min";
  }
  return "?";
}

}  // namespace runtime
}  // namespace halftone
