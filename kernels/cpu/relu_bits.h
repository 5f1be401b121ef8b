// Blocks of a relu's bits where channels are innermost: bit k of byte j is of
// element 8 j + k.
#ifndef HALFTONE_KERNELS_CPU_RELU_BITS_H_
#define HALFTONE_KERNELS_CPU_RELU_BITS_H_

#include <cstdint>
#include <cstring>

#include "absl/base/attributes.h"
#include "kernels/cpu/isa.h"
#include "kernels/functors/relu_bits.h"

#ifdef HT_ISA_X86
#include <immintrin.h>
#endif

namespace halftone {
namespace kernels {

// A vector's worth of them, by instruction set; for bodies of ForIsa that are
// told theirs. As LowVector, functions of pointers.
template <Isa kIsa>
struct ReluLanes {
  using Bits = uint8_t;
  static Bits Make(const float* out) {
    unsigned byte = 0;
    for (int k = 0; k < 8; ++k) {
      byte |= unsigned{functors::PassesRelu(out[k])} << k;
    }
    return static_cast<uint8_t>(byte);
  }
  static void Apply(Bits bits, float* grad) {
    for (int k = 0; k < 8; ++k) {
      grad[k] = functors::ReluGradOfBit((bits >> k & 1) != 0, grad[k]);
    }
  }
};

#ifdef HT_ISA_X86

template <>
struct ReluLanes<Isa::kAvx2> {
  using Bits = uint8_t;
  HT_TARGET_AVX2 static Bits Make(const float* out) {
    // Not less than or equal, or unordered.
    const __m256 passes =
        _mm256_cmp_ps(_mm256_loadu_ps(out), _mm256_setzero_ps(), _CMP_NLE_UQ);
    return static_cast<Bits>(_mm256_movemask_ps(passes));
  }
  HT_TARGET_AVX2 static void Apply(Bits bits, float* grad) {
    const __m256i lanes = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i passes = _mm256_cmpeq_epi32(
        _mm256_and_si256(_mm256_set1_epi32(bits), lanes), lanes);
    _mm256_storeu_ps(grad, _mm256_and_ps(_mm256_castsi256_ps(passes),
                                         _mm256_loadu_ps(grad)));
  }
};

template <>
struct ReluLanes<Isa::kAvx512> {
  using Bits = uint16_t;
  HT_TARGET_AVX512 static Bits Make(const float* out) {
    return _mm512_cmp_ps_mask(_mm512_loadu_ps(out), _mm512_setzero_ps(),
                              _CMP_NLE_UQ);
  }
  HT_TARGET_AVX512 static void Apply(Bits bits, float* grad) {
    // Not maskz_loadu: what was stored before would be waited for.
    _mm512_storeu_ps(grad, _mm512_maskz_mov_ps(bits, _mm512_loadu_ps(grad)));
  }
};

#endif  // HT_ISA_X86

// Of a LowVectors.
template <typename Some>
class ReluMasks {
 public:
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Make(const typename Some::Lanes& out) {
#pragma GCC unroll 2
    for (int v = 0; v < Some::kVectors; ++v) bits_[v] = Of::Make(out[v]);
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Apply(typename Some::Lanes& grad) const {
#pragma GCC unroll 2
    for (int v = 0; v < Some::kVectors; ++v) Of::Apply(bits_[v], grad[v]);
  }
  void Load(const uint8_t* from) { std::memcpy(bits_, from, sizeof(bits_)); }
  void Store(uint8_t* to) const { std::memcpy(to, bits_, sizeof(bits_)); }

 private:
  using Of = ReluLanes<Some::kIsa>;
  typename Of::Bits bits_[Some::kVectors];
};

// The bits of what a relu made: functors::PassesRelu. n is a multiple of 8.
void PackReluBits(const float* out, int64_t n, uint8_t* bits);

// x_grad[i] = functors::ReluGradOfBit(bit i, grad[i]). `x_grad` may be `grad`;
// n is a multiple of 8.
void ApplyReluBits(const uint8_t* bits, const float* grad, float* x_grad,
                   int64_t n);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_RELU_BITS_H_
