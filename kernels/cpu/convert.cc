#include "kernels/cpu/convert.h"

#include <algorithm>
#include <cstring>

#ifdef HT_ISA_X86
#include <immintrin.h>
#endif

#include "graph/base/check.h"
#include "kernels/common/dispatch.h"

namespace halftone {
namespace kernels {
namespace {

#ifdef HT_ISA_X86

HT_TARGET_AVX2 void HalfToFloatAvx2(const half* from, float* to, int64_t n) {
  int64_t i = 0;
#pragma GCC unroll 8
  for (; i + 8 <= n; i += 8) {
    const __m128i h =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(h));
  }
  for (; i < n; ++i) to[i] = _cvtsh_ss(from[i].bits);
}

// The zero-masked forms: GCC 12 takes the plain ones' undefined pass-through
// operand for an uninitialised variable.
constexpr __mmask16 kAll = 0xffff;

HT_TARGET_AVX512 void HalfToFloatAvx512(const half* from, float* to,
                                        int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m256i h =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    _mm512_storeu_ps(to + i, _mm512_maskz_cvtph_ps(kAll, h));
  }
  if (i == n) return;
  const __mmask16 rest = static_cast<__mmask16>((1u << (n - i)) - 1);
  const __m256i h = _mm256_maskz_loadu_epi16(rest, from + i);
  _mm512_mask_storeu_ps(to + i, rest, _mm512_maskz_cvtph_ps(kAll, h));
}

HT_TARGET_AVX2 void FloatToHalfAvx2(const float* from, half* to, int64_t n) {
  int64_t i = 0;
#pragma GCC unroll 8
  for (; i + 8 <= n; i += 8) {
    const __m128i h =
        _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), h);
  }
  for (; i < n; ++i) {
    to[i].bits = _cvtss_sh(from[i], _MM_FROUND_TO_NEAREST_INT);
  }
}

HT_TARGET_AVX512 void FloatToHalfAvx512(const float* from, half* to,
                                        int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m256i h = _mm512_maskz_cvtps_ph(kAll, _mm512_loadu_ps(from + i),
                                            _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), h);
  }
  if (i == n) return;
  const __mmask16 rest = static_cast<__mmask16>((1u << (n - i)) - 1);
  const __m256i h = _mm512_maskz_cvtps_ph(
      kAll, _mm512_maskz_loadu_ps(rest, from + i), _MM_FROUND_TO_NEAREST_INT);
  _mm256_mask_storeu_epi16(to + i, rest, h);
}

#endif  // HT_ISA_X86

// One element after the other, as the types' own conversions do it.
template <typename From, typename To>
void ConvertEach(const From* from, To* to, int64_t n, Isa isa) {
  ForIsa(isa, [=] {
#pragma GCC unroll 4
    for (int64_t i = 0; i < n; ++i) {
      to[i] = static_cast<To>(from[i]);
    }
  });
}

}  // namespace

void ToFloat(const half* from, float* to, int64_t n, Isa isa) {
#ifdef HT_ISA_X86
  if (isa == Isa::kAvx512) return HalfToFloatAvx512(from, to, n);
  if (isa == Isa::kAvx2) return HalfToFloatAvx2(from, to, n);
#endif
  ConvertEach(from, to, n, isa);
}

void FromFloat(const float* from, half* to, int64_t n, Isa isa) {
#ifdef HT_ISA_X86
  if (isa == Isa::kAvx512) return FloatToHalfAvx512(from, to, n);
  if (isa == Isa::kAvx2) return FloatToHalfAvx2(from, to, n);
#endif
  ConvertEach(from, to, n, isa);
}

void ToFloat(const bfloat16* from, float* to, int64_t n, Isa isa) {
  ConvertEach(from, to, n, isa);
}

void FromFloat(const float* from, bfloat16* to, int64_t n, Isa isa) {
  ConvertEach(from, to, n, isa);
}

void ToFloat(const float* from, float* to, int64_t n, Isa) {
  if (from != to && n > 0) memcpy(to, from, n * sizeof(float));
}

void FromFloat(const float* from, float* to, int64_t n, Isa) {
  if (from != to && n > 0) memcpy(to, from, n * sizeof(float));
}

void ToFloat(DType dtype, const void* from, float* to, int64_t n) {
  switch (dtype) {
    case DType::kF16:
      return ToFloat(static_cast<const half*>(from), to, n);
    case DType::kBF16:
      return ToFloat(static_cast<const bfloat16*>(from), to, n);
    case DType::kF32:
      return ToFloat(static_cast<const float*>(from), to, n);
    default:
      using Others = TypeList<double, int32_t, int64_t, uint8_t, bool>;
      DispatchType(Others(), dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        ConvertEach(static_cast<const T*>(from), to, n, HostIsa());
      });
  }
}

void FromFloat(DType dtype, const float* from, void* to, int64_t n) {
  DispatchType(FloatTypes(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    FromFloat(from, static_cast<T*>(to), n);
  });
}

void RoundTo(DType dtype, float* x, int64_t n) {
  if (dtype == DType::kF32) return;
  alignas(64) char stored[kConvertBlock * sizeof(half)];
  for (int64_t at = 0; at < n; at += kConvertBlock) {
    const int64_t part = std::min(kConvertBlock, n - at);
    FromFloat(dtype, x + at, stored, part);
    ToFloat(dtype, stored, x + at, part);
  }
}

}  // namespace kernels
}  // namespace halftone
