#include "kernels/cpu/random.h"

#include <algorithm>

#include "graph/base/philox.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/low_vector.h"

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

// Of ApplyDropout: elements that are drawn for at a time, at most, and how far
// ahead they are fetched, as what draws leaves few loads under way.
constexpr int kMost = 32;
constexpr int64_t kAhead = 1024;

template <typename T>
void ApplyDropout(const functors::DropoutOp& dropout, uint64_t key,
                  uint64_t step, uint64_t sample, int64_t first, int64_t n,
                  const T* x, T* y) {
  // What is outside of whole vectors, fewer than `kMost`.
  const auto ends = [&](int64_t begin, int64_t end) {
    uint32_t words[kMost + 8];
    const uint32_t* bits =
        DrawBits(key, step, sample, first + begin, end - begin, words);
    for (int64_t i = begin; i < end; ++i) {
      y[i] = static_cast<T>(dropout(static_cast<float>(x[i]), bits[i - begin]));
    }
  };
  const int64_t begin = std::min(n, (4 - first % 4) % 4);  // a block's
  if (begin > 0) ends(0, begin);
  int64_t end = begin;
  const PhiloxStart start(key, PhiloxCounter(step, sample, 0));
  ForIsa([=, &start, &end, op = dropout](auto tag) {
    const functors::DropoutOp f = op;  // no load in the loops
    using Low = LowVector<decltype(tag)::value>;
    using Draws = PhiloxVector<decltype(tag)::value>;
    constexpr int kDraws = 4 * Draws::kBlocks;
    constexpr int kSize = std::max<int>(kDraws, Low::kSize);
    static_assert(kSize <= kMost, "a vector");
    int64_t i = begin;
    for (; i + kSize <= n; i += kSize) {
      alignas(64) uint32_t words[kSize];
      alignas(64) float v[kSize];
      for (int k = 0; k < kSize; k += kDraws) {
        Draws::Draw(start, static_cast<uint32_t>((first + i + k) / 4),
                    words + k);
      }
#pragma GCC unroll 4
      for (int k = 0; k < kSize; k += Low::kSize) {
        __builtin_prefetch(x + i + k + kAhead);
        Low::Load(x + i + k, v + k);
#pragma GCC ivdep
#pragma GCC unroll 1
        for (int j = k; j < k + Low::kSize; ++j) v[j] = f(v[j], words[j]);
        Low::Store(v + k, y + i + k);
      }
    }
    end = i;
  });
  if (end < n) ends(end, n);
}

template void ApplyDropout(const functors::DropoutOp&, uint64_t, uint64_t,
                           uint64_t, int64_t, int64_t, const float*, float*);
template void ApplyDropout(const functors::DropoutOp&, uint64_t, uint64_t,
                           uint64_t, int64_t, int64_t, const half*, half*);
template void ApplyDropout(const functors::DropoutOp&, uint64_t, uint64_t,
                           uint64_t, int64_t, int64_t, const bfloat16*,
                           bfloat16*);

}  // namespace kernels
}  // namespace halftone
