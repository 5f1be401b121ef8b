#include "kernels/cpu/random.h"

#include <algorithm>
#include <type_traits>

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

// The draws of kGroups times kBlocks blocks from `block` on: a word in each
// 64-bit lane, whose upper half is anything, since products ignore it. The
// steps of kMostGroups take turns, as each step waits for the one before.
template <Isa kIsa>
struct PhiloxVector {
  static constexpr int kBlocks = 1, kMostGroups = 1;
  template <int kGroups>
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
  static constexpr int kBlocks = 4, kMostGroups = 2;
  template <int kGroups>
  HT_TARGET_AVX2 static void Draw(const PhiloxStart& start, uint32_t block,
                                  uint32_t* words) {
    // Blocks in the order in which the last two steps leave them.
    const __m256i first = _mm256_set_epi64x(3, 1, 2, 0);
    __m256i c0[kGroups], c1[kGroups], c2[kGroups], c3[kGroups];
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      const __m256i own =
          _mm256_add_epi32(_mm256_set1_epi64x(block + kBlocks * g), first);
      c0[g] = _mm256_set1_epi64x(start.words[0]);
      c1[g] = _mm256_set1_epi64x(start.words[1]);
      c2[g] = _mm256_xor_si256(own, _mm256_set1_epi64x(start.words[2]));
      c3[g] = _mm256_set1_epi64x(start.words[3]);
    }
    const __m256i m0 = _mm256_set1_epi64x(kPhiloxTimes0);
    const __m256i m1 = _mm256_set1_epi64x(kPhiloxTimes1);
#pragma GCC unroll 10
    for (int round = 1; round < kPhiloxRounds; ++round) {
      const __m256i k0 = _mm256_set1_epi64x(start.keys[2 * round]);
      const __m256i k1 = _mm256_set1_epi64x(start.keys[2 * round + 1]);
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g) {
        const __m256i p0 = _mm256_mul_epu32(c0[g], m0);
        const __m256i p1 = _mm256_mul_epu32(c2[g], m1);
        c0[g] = _mm256_xor_si256(
            _mm256_xor_si256(_mm256_srli_epi64(p1, 32), c1[g]), k0);
        c2[g] = _mm256_xor_si256(
            _mm256_xor_si256(_mm256_srli_epi64(p0, 32), c3[g]), k1);
        c1[g] = p1;
        c3[g] = p0;
      }
    }
    __m256i* to = reinterpret_cast<__m256i*>(words);
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      const __m256i low =
          _mm256_blend_epi32(c0[g], _mm256_slli_epi64(c1[g], 32), 0xaa);
      const __m256i high =
          _mm256_blend_epi32(c2[g], _mm256_slli_epi64(c3[g], 32), 0xaa);
      _mm256_storeu_si256(to + 2 * g, _mm256_unpacklo_epi64(low, high));
      _mm256_storeu_si256(to + 2 * g + 1, _mm256_unpackhi_epi64(low, high));
    }
  }
};

template <>
struct PhiloxVector<Isa::kAvx512> {
  static constexpr int kBlocks = 8, kMostGroups = 4;
  template <int kGroups>
  HT_TARGET_AVX512 static void Draw(const PhiloxStart& start, uint32_t block,
                                    uint32_t* words) {
    constexpr __mmask8 kAll = 0xff;  // see low_vector.h
    constexpr int kXor = 0x96;       // of three
    const __m512i first = _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0);
    __m512i c0[kGroups], c1[kGroups], c2[kGroups], c3[kGroups];
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      const __m512i own =
          _mm512_add_epi32(_mm512_set1_epi64(block + kBlocks * g), first);
      c0[g] = _mm512_set1_epi64(start.words[0]);
      c1[g] = _mm512_set1_epi64(start.words[1]);
      c2[g] = _mm512_xor_si512(own, _mm512_set1_epi64(start.words[2]));
      c3[g] = _mm512_set1_epi64(start.words[3]);
    }
    const __m512i m0 = _mm512_set1_epi64(kPhiloxTimes0);
    const __m512i m1 = _mm512_set1_epi64(kPhiloxTimes1);
#pragma GCC unroll 10
    for (int round = 1; round < kPhiloxRounds; ++round) {
      const __m512i k0 = _mm512_set1_epi64(start.keys[2 * round]);
      const __m512i k1 = _mm512_set1_epi64(start.keys[2 * round + 1]);
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g) {
        const __m512i p0 = _mm512_maskz_mul_epu32(kAll, c0[g], m0);
        const __m512i p1 = _mm512_maskz_mul_epu32(kAll, c2[g], m1);
        c0[g] = _mm512_ternarylogic_epi64(_mm512_maskz_srli_epi64(kAll, p1, 32),
                                          c1[g], k0, kXor);
        c2[g] = _mm512_ternarylogic_epi64(_mm512_maskz_srli_epi64(kAll, p0, 32),
                                          c3[g], k1, kXor);
        c1[g] = p1;
        c3[g] = p0;
      }
    }
    constexpr __mmask16 kOdd = 0xaaaa;
    __m512i* to = reinterpret_cast<__m512i*>(words);
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      const __m512i low = _mm512_mask_blend_epi32(
          kOdd, c0[g], _mm512_maskz_slli_epi64(kAll, c1[g], 32));
      const __m512i high = _mm512_mask_blend_epi32(
          kOdd, c2[g], _mm512_maskz_slli_epi64(kAll, c3[g], 32));
      _mm512_storeu_si512(to + 2 * g,
                          _mm512_maskz_unpacklo_epi64(kAll, low, high));
      _mm512_storeu_si512(to + 2 * g + 1,
                          _mm512_maskz_unpackhi_epi64(kAll, low, high));
    }
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
    constexpr int kGroups = Draws::kMostGroups;
    int i = 0;
    for (; i + kGroups * Draws::kBlocks <= blocks;
         i += kGroups * Draws::kBlocks) {
      Draws::template Draw<kGroups>(
          start, first_block + static_cast<uint32_t>(i), buffer + 4 * i);
    }
    for (; i + Draws::kBlocks <= blocks; i += Draws::kBlocks) {
      Draws::template Draw<1>(start, first_block + static_cast<uint32_t>(i),
                              buffer + 4 * i);
    }
#pragma GCC unroll 1
    for (; i < blocks; ++i) {
      PhiloxVector<Isa::kBaseline>::Draw<1>(
          start, first_block + static_cast<uint32_t>(i), buffer + 4 * i);
    }
  });
  return buffer + skip;
}

namespace {
// ApplyDropout from element `i` on, where a block begins, by vectors, the draws
// of kGroups of them at a time; where the rest begins. For bodies of ForIsa
// (isa.h).
template <Isa kIsa, int kGroups, typename T>
inline int64_t DropVectors(const functors::DropoutOp& f,
                           const PhiloxStart& start, int64_t first, int64_t i,
                           int64_t n, const T* x, T* y) {
  // Fetched meanwhile, as few loads are under way.
  constexpr int64_t kAhead = 1024;
  using Low = LowVector<kIsa>;
  using Draws = PhiloxVector<kIsa>;
  constexpr int kDraws = 4 * kGroups * Draws::kBlocks;
  constexpr int kSize = std::max<int>(kDraws, Low::kSize);
  for (; i + kSize <= n; i += kSize) {
    alignas(64) uint32_t words[kSize];
    for (int k = 0; k < kSize; k += kDraws) {
      Draws::template Draw<kGroups>(
          start, static_cast<uint32_t>((first + i + k) / 4), words + k);
    }
#pragma GCC unroll 8
    for (int k = 0; k < kSize; k += Low::kSize) {
      const T* from = x + i + k;
      T* to = y + i + k;
      __builtin_prefetch(from + kAhead);
      if constexpr (std::is_same<T, float>::value) {  // Load goes by halves
#pragma GCC ivdep
#pragma GCC unroll 1
        for (int j = 0; j < Low::kSize; ++j) to[j] = f(from[j], words[k + j]);
      } else {
        alignas(64) float v[Low::kSize];
        Low::Load(from, v);
#pragma GCC ivdep
#pragma GCC unroll 1
        for (int j = 0; j < Low::kSize; ++j) v[j] = f(v[j], words[k + j]);
        Low::Store(v, to);
      }
    }
  }
  return i;
}
}  // namespace

template <typename T>
void ApplyDropout(const functors::DropoutOp& dropout, uint64_t key,
                  uint64_t step, uint64_t sample, int64_t first, int64_t n,
                  const T* x, T* y) {
  // What is outside of vectors.
  const auto ends = [&](int64_t begin, int64_t end) {
    uint32_t words[32 + 8];
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
  ForIsa([=, &start, &end](auto tag) {
    constexpr Isa kIsa = decltype(tag)::value;
    const functors::DropoutOp f = dropout;  // no load in the loops
    constexpr int kMost = PhiloxVector<kIsa>::kMostGroups;
    const int64_t rest =
        DropVectors<kIsa, kMost>(f, start, first, begin, n, x, y);
    end = DropVectors<kIsa, 1>(f, start, first, rest, n, x, y);
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
