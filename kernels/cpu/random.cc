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

// What all blocks of a sample share: the rounds' keys, and what the first round
// makes of the counter of block 0; another's number is only to be joined to
// word 2 (by exclusive or).
struct PhiloxStart {
  uint64_t key;
  Philox4 counter;
  uint64_t keys[2 * kPhiloxRounds], words[4];

  PhiloxStart(uint64_t key_in, const Philox4& first)
      : key(key_in), counter(first) {
    uint32_t k0 = static_cast<uint32_t>(key);
    uint32_t k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < kPhiloxRounds; ++round) {
      keys[2 * round] = k0;
      keys[2 * round + 1] = k1;
      k0 += kPhiloxKeyStep0;
      k1 += kPhiloxKeyStep1;
    }
    const uint64_t p0 = uint64_t{kPhiloxTimes0} * counter.x[0];
    const uint64_t p1 = uint64_t{kPhiloxTimes1} * counter.x[2];
    words[0] = (p1 >> 32) ^ counter.x[1] ^ keys[0];
    words[1] = p1;
    words[2] = (p0 >> 32) ^ keys[1];
    words[3] = p0;
  }
};

// The draws of kBlocks blocks from `block` on: a word in each 64-bit lane,
// whose upper half is anything, since products ignore it.
template <Isa kIsa>
struct PhiloxVector {
  static constexpr int kBlocks = 1;
  static void Draw(const PhiloxStart& start, uint32_t block, uint32_t* words) {
    Philox4 counter = start.counter;
    counter.x[3] = block;
    const Philox4 draw = Philox(start.key, counter);
    for (int j = 0; j < 4; ++j) words[j] = draw.x[j];
  }
};

#ifdef HT_ISA_X86

template <>
struct PhiloxVector<Isa::kAvx2> {
  static constexpr int kBlocks = 4;
  HT_TARGET_AVX2 static void Draw(const PhiloxStart& start, uint32_t block,
                                  uint32_t* words) {
    // Blocks in the order in which the last two steps leave them.
    const __m256i first = _mm256_set_epi64x(3, 1, 2, 0);
    const __m256i own = _mm256_add_epi32(_mm256_set1_epi64x(block), first);
    __m256i c0 = _mm256_set1_epi64x(start.words[0]);
    __m256i c1 = _mm256_set1_epi64x(start.words[1]);
    __m256i c2 = _mm256_xor_si256(own, _mm256_set1_epi64x(start.words[2]));
    __m256i c3 = _mm256_set1_epi64x(start.words[3]);
    const __m256i m0 = _mm256_set1_epi64x(kPhiloxTimes0);
    const __m256i m1 = _mm256_set1_epi64x(kPhiloxTimes1);
#pragma GCC unroll 10
    for (int round = 1; round < kPhiloxRounds; ++round) {
      const __m256i p0 = _mm256_mul_epu32(c0, m0);
      const __m256i p1 = _mm256_mul_epu32(c2, m1);
      c0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c1),
                            _mm256_set1_epi64x(start.keys[2 * round]));
      c2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c3),
                            _mm256_set1_epi64x(start.keys[2 * round + 1]));
      c1 = p1;
      c3 = p0;
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
  HT_TARGET_AVX512 static void Draw(const PhiloxStart& start, uint32_t block,
                                    uint32_t* words) {
    constexpr __mmask8 kAll = 0xff;  // see low_vector.h
    constexpr int kXor = 0x96;       // of three
    const __m512i first = _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0);
    const __m512i own = _mm512_add_epi32(_mm512_set1_epi64(block), first);
    __m512i c0 = _mm512_set1_epi64(start.words[0]);
    __m512i c1 = _mm512_set1_epi64(start.words[1]);
    __m512i c2 = _mm512_xor_si512(own, _mm512_set1_epi64(start.words[2]));
    __m512i c3 = _mm512_set1_epi64(start.words[3]);
    const __m512i m0 = _mm512_set1_epi64(kPhiloxTimes0);
    const __m512i m1 = _mm512_set1_epi64(kPhiloxTimes1);
#pragma GCC unroll 10
    for (int round = 1; round < kPhiloxRounds; ++round) {
      const __m512i p0 = _mm512_maskz_mul_epu32(kAll, c0, m0);
      const __m512i p1 = _mm512_maskz_mul_epu32(kAll, c2, m1);
      c0 = _mm512_ternarylogic_epi64(_mm512_maskz_srli_epi64(kAll, p1, 32), c1,
                                     _mm512_set1_epi64(start.keys[2 * round]),
                                     kXor);
      c2 = _mm512_ternarylogic_epi64(
          _mm512_maskz_srli_epi64(kAll, p0, 32), c3,
          _mm512_set1_epi64(start.keys[2 * round + 1]), kXor);
      c1 = p1;
      c3 = p0;
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
  const PhiloxStart start(key, PhiloxCounter(step, sample, 0));
  ForIsa(isa, [=, &start](auto tag) {
    using Draws = PhiloxVector<decltype(tag)::value>;
    int i = 0;
    for (; i + Draws::kBlocks <= blocks; i += Draws::kBlocks) {
      Draws::Draw(start, first_block + static_cast<uint32_t>(i),
                  buffer + 4 * i);
    }
#pragma GCC unroll 1
    for (; i < blocks; ++i) {
      PhiloxVector<Isa::kBaseline>::Draw(
          start, first_block + static_cast<uint32_t>(i), buffer + 4 * i);
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
