#include "kernels/cpu/random.h"

#include "graph/base/philox.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/map.h"

#ifdef HT_ISA_X86
#include <immintrin.h>
#endif

namespace halftone {
namespace kernels {
namespace {

// The draws of kBlocks blocks, of which `counter` is the first's: a word in
// each 64-bit lane, whose upper half is anything, since products ignore it.
template <Isa kIsa>
struct PhiloxVector {
  static constexpr int kBlocks = 1;
  static void Draw(uint64_t key, const Philox4& counter, uint32_t* words) {
    const Philox4 draw = Philox(key, counter);
    for (int j = 0; j < 4; ++j) words[j] = draw.x[j];
  }
};

#ifdef HT_ISA_X86

template <>
struct PhiloxVector<Isa::kAvx2> {
  static constexpr int kBlocks = 4;
  HT_TARGET_AVX2 static void Draw(uint64_t key, const Philox4& counter,
                                  uint32_t* words) {
    // Blocks in the order in which the last two steps leave them.
    const __m256i first = _mm256_set_epi64x(3, 1, 2, 0);
    __m256i c0 = _mm256_set1_epi64x(counter.x[0]);
    __m256i c1 = _mm256_set1_epi64x(counter.x[1]);
    __m256i c2 = _mm256_set1_epi64x(counter.x[2]);
    __m256i c3 = _mm256_add_epi32(_mm256_set1_epi64x(counter.x[3]), first);
    const __m256i m0 = _mm256_set1_epi64x(kPhiloxTimes0);
    const __m256i m1 = _mm256_set1_epi64x(kPhiloxTimes1);
    uint32_t k0 = static_cast<uint32_t>(key);
    uint32_t k1 = static_cast<uint32_t>(key >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < kPhiloxRounds; ++round) {
      const __m256i p0 = _mm256_mul_epu32(c0, m0);
      const __m256i p1 = _mm256_mul_epu32(c2, m1);
      c0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c1),
                            _mm256_set1_epi64x(k0));
      c2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c3),
                            _mm256_set1_epi64x(k1));
      c1 = p1;
      c3 = p0;
      k0 += kPhiloxKeyStep0;
      k1 += kPhiloxKeyStep1;
    }
    const __m256i low = _mm256_blend_epi32(c0, _mm256_slli_epi64(c1, 32), 0xaa);
    const __m256i high =
        _mm256_blend_epi32(c2, _mm256_slli_epi64(c3, 32), 0xaa);
    __m256i* to = reinterpret_cast<__m256i*>(words);
    _mm256_storeu_si256(to, _mm256_unpacklo_epi64(low, high));
    _mm256_storeu_si256(to + 1, _mm256_unpackhi_epi64(low, high));
  }
};

template <>
struct PhiloxVector<Isa::kAvx512> {
  static constexpr int kBlocks = 8;
  HT_TARGET_AVX512 static void Draw(uint64_t key, const Philox4& counter,
                                    uint32_t* words) {
    constexpr __mmask8 kAll = 0xff;  // see low_vector.h
    constexpr int kXor = 0x96;       // of three
    const __m512i first = _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0);
    __m512i c0 = _mm512_set1_epi64(counter.x[0]);
    __m512i c1 = _mm512_set1_epi64(counter.x[1]);
    __m512i c2 = _mm512_set1_epi64(counter.x[2]);
    __m512i c3 = _mm512_add_epi32(_mm512_set1_epi64(counter.x[3]), first);
    const __m512i m0 = _mm512_set1_epi64(kPhiloxTimes0);
    const __m512i m1 = _mm512_set1_epi64(kPhiloxTimes1);
    uint32_t k0 = static_cast<uint32_t>(key);
    uint32_t k1 = static_cast<uint32_t>(key >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < kPhiloxRounds; ++round) {
      const __m512i p0 = _mm512_maskz_mul_epu32(kAll, c0, m0);
      const __m512i p1 = _mm512_maskz_mul_epu32(kAll, c2, m1);
      c0 = _mm512_ternarylogic_epi64(_mm512_maskz_srli_epi64(kAll, p1, 32), c1,
                                     _mm512_set1_epi64(k0), kXor);
      c2 = _mm512_ternarylogic_epi64(_mm512_maskz_srli_epi64(kAll, p0, 32), c3,
                                     _mm512_set1_epi64(k1), kXor);
      c1 = p1;
      c3 = p0;
      k0 += kPhiloxKeyStep0;
      k1 += kPhiloxKeyStep1;
    }
    constexpr __mmask16 kOdd = 0xaaaa;
    const __m512i low = _mm512_mask_blend_epi32(
        kOdd, c0, _mm512_maskz_slli_epi64(kAll, c1, 32));
    const __m512i high = _mm512_mask_blend_epi32(
        kOdd, c2, _mm512_maskz_slli_epi64(kAll, c3, 32));
    __m512i* to = reinterpret_cast<__m512i*>(words);
    _mm512_storeu_si512(to, _mm512_maskz_unpacklo_epi64(kAll, low, high));
    _mm512_storeu_si512(to + 1, _mm512_maskz_unpackhi_epi64(kAll, low, high));
  }
};

#endif  // HT_ISA_X86

}  // namespace

const uint32_t* DrawBits(uint64_t key, uint64_t step, uint64_t sample,
                         int64_t first, int64_t n, uint32_t* buffer, Isa isa) {
  const uint32_t first_block = static_cast<uint32_t>(first / 4);
  const int64_t skip = first % 4;
  const int blocks = static_cast<int>((skip + n + 3) / 4);
  ForIsa(isa, [=](auto tag) {
    using Draws = PhiloxVector<decltype(tag)::value>;
    const auto counter = [=](int i) {
      return PhiloxCounter(step, sample,
                           first_block + static_cast<uint32_t>(i));
    };
    int i = 0;
    for (; i + Draws::kBlocks <= blocks; i += Draws::kBlocks) {
      Draws::Draw(key, counter(i), buffer + 4 * i);
    }
#pragma GCC unroll 1
    for (; i < blocks; ++i) {
      PhiloxVector<Isa::kBaseline>::Draw(key, counter(i), buffer + 4 * i);
    }
  });
  return buffer + skip;
}

void ApplyDropout(const functors::DropoutOp& dropout, uint64_t key,
                  uint64_t step, uint64_t sample, int64_t first, int64_t n,
                  const float* x, float* y) {
  alignas(64) uint32_t words[kConvertBlock + 8];
  ForBlocks(0, n, [&](int64_t at, int64_t count) {
    const uint32_t* bits =
        DrawBits(key, step, sample, first + at, count, words);
    ForIsa([=, f = dropout, from = x + at, to = y + at] {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) to[i] = f(from[i], bits[i]);
    });
  });
}

}  // namespace kernels
}  // namespace halftone
