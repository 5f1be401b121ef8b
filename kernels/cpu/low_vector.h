// Vectors of f16 and bf16 to and from f32, by instruction set: LowVector<isa>;
// of f32 as they are. Round: to what they would be had they been stored. For
// bodies of ForIsa (isa.h) that are told theirs. All give the bits of
// graph/base/half.h. StoreExact stores what need not be rounded, as it came
// from Load or Round; IsAny says whether one of a vector's numbers is not 0.
#ifndef HALFTONE_KERNELS_CPU_LOW_VECTOR_H_
#define HALFTONE_KERNELS_CPU_LOW_VECTOR_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "graph/base/half.h"
#include "kernels/cpu/isa.h"

#ifdef HT_ISA_X86
#include <immintrin.h>
#endif

namespace halftone {
namespace kernels {

// Functions of pointers: vectors of one instruction set are no arguments in
// code for another. The compiler keeps what they point to in registers.
template <int kLanes>
struct FloatVector {
  static constexpr int kSize = kLanes;
  static void Load(const float* from, float* to) {
    std::memcpy(to, from, kSize * sizeof(float));
  }
  static void Store(const float* from, float* to) {
    std::memcpy(to, from, kSize * sizeof(float));
  }
  static void Round(float*, float) {}
  static void StoreExact(const float* from, float* to) { Store(from, to); }
  static bool IsAny(const int32_t* x) {
    int32_t any = 0;
    for (int i = 0; i < kSize; ++i) any |= x[i];
    return any != 0;
  }
};

// Without such instructions: calls, as conversions that are inlined wherever
// one is loaded take most of a kernel's time to compile.
template <Isa kIsa>
struct LowVector : FloatVector<8> {
  using FloatVector::Load;
  using FloatVector::Round;
  using FloatVector::Store;
  using FloatVector::StoreExact;
  template <typename T>
  ABSL_ATTRIBUTE_NOINLINE static void Load(const T* from, float* to) {
    for (int i = 0; i < kSize; ++i) to[i] = static_cast<float>(from[i]);
  }
  template <typename T>
  ABSL_ATTRIBUTE_NOINLINE static void Store(const float* from, T* to) {
    for (int i = 0; i < kSize; ++i) to[i] = static_cast<T>(from[i]);
  }
  template <typename T>
  ABSL_ATTRIBUTE_NOINLINE static void Round(float* x, T) {
    for (int i = 0; i < kSize; ++i) x[i] = static_cast<float>(T(x[i]));
  }
  template <typename T>
  static void StoreExact(const float* from, T* to) {
    Store(from, to);
  }
};

#ifdef HT_ISA_X86

template <>
struct LowVector<Isa::kAvx2> : FloatVector<8> {
  using FloatVector::Load;
  using FloatVector::Round;
  using FloatVector::Store;
  using FloatVector::StoreExact;
  HT_TARGET_AVX2 static void Load(const half* from, float* to) {
    _mm256_storeu_ps(to, _mm256_cvtph_ps(Bits(from)));
  }
  HT_TARGET_AVX2 static void Load(const bfloat16* from, float* to) {
    const __m256i wide = _mm256_cvtepu16_epi32(Bits(from));
    _mm256_storeu_ps(to, _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16)));
  }
  HT_TARGET_AVX2 static void Store(const float* from, half* to) {
    const __m128i bits =
        _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bits);
  }
  HT_TARGET_AVX2 static void Store(const float* from, bfloat16* to) {
    __m256i rounded;
    ToHighBits(from, &rounded);
    Pack(&rounded, to);
  }
  HT_TARGET_AVX2 static void StoreExact(const float* from, half* to) {
    Store(from, to);
  }
  HT_TARGET_AVX2 static void StoreExact(const float* from, bfloat16* to) {
    const __m256i high =
        _mm256_srli_epi32(_mm256_castps_si256(_mm256_loadu_ps(from)), 16);
    Pack(&high, to);
  }
  HT_TARGET_AVX2 static void Round(float* x, half) {
    const __m128i bits =
        _mm256_cvtps_ph(_mm256_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_ps(x, _mm256_cvtph_ps(bits));
  }
  HT_TARGET_AVX2 static void Round(float* x, bfloat16) {
    __m256i rounded;
    ToHighBits(x, &rounded);
    _mm256_storeu_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(rounded, 16)));
  }

 private:
  // The upper 16 bits of numbers rounded to bf16.
  HT_TARGET_AVX2 static void ToHighBits(const float* from, __m256i* to) {
    const __m256 x = _mm256_loadu_ps(from);
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i high = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i half_place = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i rounded =
        _mm256_srli_epi32(_mm256_add_epi32(bits, half_place), 16);
    const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    *to = _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(nan));
  }
  // Their lower 16 bits.
  HT_TARGET_AVX2 static void Pack(const __m256i* lanes, bfloat16* to) {
    const __m128i packed = _mm_packus_epi32(
        _mm256_castsi256_si128(*lanes), _mm256_extracti128_si256(*lanes, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), packed);
  }
  template <typename T>
  HT_TARGET_AVX2 static __m128i Bits(const T* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }
};

template <>
struct LowVector<Isa::kAvx512> : FloatVector<16> {
  using FloatVector::Load;
  using FloatVector::Round;
  using FloatVector::Store;
  using FloatVector::StoreExact;
  // The zero-masked forms: GCC 12 takes the plain ones' undefined pass-through
  // operand for an uninitialised variable.
  static constexpr __mmask16 kAll = 0xffff;

  // In fewer steps than by halves.
  HT_TARGET_AVX512 static bool IsAny(const int32_t* x) {
    const __m512i lanes = _mm512_loadu_si512(x);
    return _mm512_test_epi32_mask(lanes, lanes) != 0;
  }
  HT_TARGET_AVX512 static void Load(const half* from, float* to) {
    _mm512_storeu_ps(to, _mm512_maskz_cvtph_ps(kAll, Bits(from)));
  }
  HT_TARGET_AVX512 static void Load(const bfloat16* from, float* to) {
    // Each to the upper half of a lane.
    const __m512i halves = _mm512_maskz_permutexvar_epi16(
        0xaaaaaaaa, Spread(), _mm512_castsi256_si512(Bits(from)));
    _mm512_storeu_ps(to, _mm512_castsi512_ps(halves));
  }
  HT_TARGET_AVX512 static void Store(const float* from, half* to) {
    const __m256i bits = _mm512_maskz_cvtps_ph(kAll, _mm512_loadu_ps(from),
                                               _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bits);
  }
  HT_TARGET_AVX512 static void Store(const float* from, bfloat16* to) {
    if (ABSL_PREDICT_TRUE(kHostHasBf16)) {
      // An instruction, which takes subnormal numbers for zeros.
      const __m512 x = _mm512_loadu_ps(from);
      __m256i narrow;
      asm("vcvtneps2bf16 %1, %0" : "=v"(narrow) : "v"(x));
      if (ABSL_PREDICT_TRUE(_mm512_fpclass_ps_mask(x, kSubnormal) == 0)) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), narrow);
        return;
      }
    }
    __m512i rounded;
    RoundHigh(from, &rounded);
    Pack(&rounded, to);
  }
  // Two vectors that are neighbours, in fewer steps than one by one.
  HT_TARGET_AVX512 static void LoadTwo(const bfloat16* from, float* first,
                                       float* second) {
    __m512i one, other;
    Widen(_mm512_loadu_si512(from), &one, &other);
    _mm512_storeu_si512(first, one);
    _mm512_storeu_si512(second, other);
  }
  HT_TARGET_AVX512 static void StoreTwo(const float* first, const float* second,
                                        bfloat16* to) {
    __m512i narrow;
    if (ABSL_PREDICT_TRUE(kHostHasBf16) &&
        ABSL_PREDICT_TRUE(Narrow(first, second, &narrow))) {
      _mm512_storeu_si512(to, narrow);
      return;
    }
    Store(first, to);
    Store(second, to + kSize);
  }
  HT_TARGET_AVX512 static void StoreExact(const float* from, half* to) {
    Store(from, to);
  }
  HT_TARGET_AVX512 static void StoreExact(const float* from, bfloat16* to) {
    const __m512i lanes = _mm512_castps_si512(_mm512_loadu_ps(from));
    Pack(&lanes, to);
  }
  // Round of two vectors, StoreExact of two that are neighbours.
  HT_TARGET_AVX512 static void RoundTwo(float* first, float* second, bfloat16) {
    __m512i one, other;  // not the arrays, which would be kept in memory
    __m512i narrow;
    if (ABSL_PREDICT_TRUE(kHostHasBf16) &&
        ABSL_PREDICT_TRUE(Narrow(first, second, &narrow))) {
      Widen(narrow, &one, &other);
    } else {
      RoundHigh(first, &one);
      RoundHigh(second, &other);
      one = Upper16(one), other = Upper16(other);
    }
    _mm512_storeu_si512(first, one);
    _mm512_storeu_si512(second, other);
  }
  HT_TARGET_AVX512 static void StoreExactTwo(const float* first,
                                             const float* second,
                                             bfloat16* to) {
    const __m512i packed = _mm512_maskz_permutex2var_epi16(
        0xffffffff, _mm512_loadu_si512(first), UpperOfTwo(),
        _mm512_loadu_si512(second));
    _mm512_storeu_si512(to, packed);
  }
  HT_TARGET_AVX512 static void Round(float* x, half) {
    const __m256i bits = _mm512_maskz_cvtps_ph(kAll, _mm512_loadu_ps(x),
                                               _MM_FROUND_TO_NEAREST_INT);
    _mm512_storeu_ps(x, _mm512_maskz_cvtph_ps(kAll, bits));
  }
  HT_TARGET_AVX512 static void Round(float* x, bfloat16) {
    __m512i rounded;
    RoundHigh(x, &rounded);
    _mm512_storeu_si512(x, Upper16(rounded));
  }

 private:
  static constexpr int kSubnormal = 0x20;  // a class of numbers

  // By an instruction, which takes subnormal numbers for zeros: whether there
  // is none.
  HT_TARGET_AVX512 static bool Narrow(const float* first, const float* second,
                                      __m512i* to) {
    const __m512 x = _mm512_loadu_ps(first), y = _mm512_loadu_ps(second);
    asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(*to) : "v"(x), "v"(y));
    return _kortestz_mask16_u8(_mm512_fpclass_ps_mask(x, kSubnormal),
                               _mm512_fpclass_ps_mask(y, kSubnormal)) != 0;
  }
  // The lower 16 of bf16, and the upper ones.
  HT_TARGET_AVX512 static void Widen(__m512i both, __m512i* first,
                                     __m512i* second) {
    const __m512i next = _mm512_add_epi16(
        Spread(), _mm512_set1_epi16(static_cast<short>(kSize)));
    *first = _mm512_maskz_permutexvar_epi16(0xaaaaaaaa, Spread(), both);
    *second = _mm512_maskz_permutexvar_epi16(0xaaaaaaaa, next, both);
  }
  HT_TARGET_AVX512 static __m512i Upper16(__m512i lanes) {
    return _mm512_and_si512(lanes, _mm512_set1_epi32(-65536));  // 0xffff0000
  }
  // Numbers whose upper 16 bits are rounded to bf16.
  HT_TARGET_AVX512 static void RoundHigh(const float* from, __m512i* to) {
    const __m512 x = _mm512_loadu_ps(from);
    const __m512i bits = _mm512_castps_si512(x);
    const __mmask16 odd =
        _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    __m512i rounded = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
    rounded =
        _mm512_mask_add_epi32(rounded, odd, bits, _mm512_set1_epi32(0x8000));
    *to = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
  }
  // Their upper 16 bits.
  HT_TARGET_AVX512 static void Pack(const __m512i* lanes, bfloat16* to) {
    const __m512i packed =
        _mm512_maskz_permutexvar_epi16(0xffffffff, Upper(), *lanes);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        __builtin_shufflevector(packed, packed, 0, 1, 2, 3));
  }
  // Of 16-bit places: the first 16 in both halves of lanes, or the upper
  // halves.
  HT_TARGET_AVX512 static __m512i Spread() {
    return _mm512_set_epi32(0xf000f, 0xe000e, 0xd000d, 0xc000c, 0xb000b,
                            0xa000a, 0x90009, 0x80008, 0x70007, 0x60006,
                            0x50005, 0x40004, 0x30003, 0x20002, 0x10001, 0);
  }
  HT_TARGET_AVX512 static __m512i Upper() {
    return _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0x1f001d, 0x1b0019,
                            0x170015, 0x130011, 0xf000d, 0xb0009, 0x70005,
                            0x30001);
  }
  HT_TARGET_AVX512 static __m512i UpperOfTwo() {
    return _mm512_set_epi32(0x3f003d, 0x3b0039, 0x370035, 0x330031, 0x2f002d,
                            0x2b0029, 0x270025, 0x230021, 0x1f001d, 0x1b0019,
                            0x170015, 0x130011, 0xf000d, 0xb0009, 0x70005,
                            0x30001);
  }
  template <typename T>
  HT_TARGET_AVX512 static __m256i Bits(const T* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
};

#endif  // HT_ISA_X86

// Some vectors that are neighbours: two, where those of bf16 take fewer steps
// together than one by one. Always inlined: a function for an instruction set
// that GCC has once tried to inline into one for none it inlines nowhere.
template <Isa kOf, int kN>
struct LowVectors {
  static constexpr Isa kIsa = kOf;
  using Low = LowVector<kIsa>;
  static constexpr int kSize = Low::kSize, kVectors = kN,
                       kElements = kN * kSize;
  using Lanes = float[kN][kSize];
  // Of a vector's first element, from that of the first one's on.
  static constexpr int Channel(int v) { return v * kSize; }

  template <typename T>
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void Load(const T* from, Lanes& to) {
    if constexpr (kTogether<T>) {
      Low::LoadTwo(from, to[0], to[1]);
    } else {
#pragma GCC unroll 2
      for (int v = 0; v < kN; ++v) Low::Load(from + v * kSize, to[v]);
    }
  }
  template <typename T>
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void Store(const Lanes& from, T* to) {
    if constexpr (kTogether<T>) {
      Low::StoreTwo(from[0], from[1], to);
    } else {
#pragma GCC unroll 2
      for (int v = 0; v < kN; ++v) Low::Store(from[v], to + v * kSize);
    }
  }
  template <typename T>
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void Round(Lanes& x, T type) {
    if constexpr (kTogether<T>) {
      Low::RoundTwo(x[0], x[1], type);
    } else {
#pragma GCC unroll 2
      for (int v = 0; v < kN; ++v) Low::Round(x[v], type);
    }
  }
  template <typename T>
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void StoreExact(const Lanes& from,
                                                      T* to) {
    if constexpr (kTogether<T>) {
      Low::StoreExactTwo(from[0], from[1], to);
    } else {
#pragma GCC unroll 2
      for (int v = 0; v < kN; ++v) Low::StoreExact(from[v], to + v * kSize);
    }
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE static void Copy(const Lanes& from, Lanes& to) {
#pragma GCC unroll 2
    for (int v = 0; v < kN; ++v) Low::Store(from[v], to[v]);
  }

 private:
  template <typename T>
  static constexpr bool kTogether =
      kN == 2 && (kIsa == Isa::kAvx512) && std::is_same_v<T, bfloat16>;
};
// The same of two pixels, which have a vector of channels each.
template <Isa kIsa>
struct LowPixels : LowVectors<kIsa, 2> {
  static constexpr int Channel(int) { return 0; }
};
// Of rows of T.
template <Isa kIsa, typename T>
inline constexpr int kMostTogether = sizeof(T) == 2 && kIsa == Isa::kAvx512 ? 2
                                                                            : 1;

// Of eight elements, as the vectors of lanes.h are.
template <Isa kIsa>
using Eight = LowVector<kIsa == Isa::kBaseline ? Isa::kBaseline : Isa::kAvx2>;

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_LOW_VECTOR_H_
