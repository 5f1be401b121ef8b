// The gradient of maximum pooling of images of one channel by windows of 3 x 3,
// two apart along both dims, with vectors of 512 bits: what windows give goes
// from the comparison to their rows' sums at once.
#ifndef HALFTONE_KERNELS_CPU_POOL_MAX_THREES_H_
#define HALFTONE_KERNELS_CPU_POOL_MAX_THREES_H_

#include <algorithm>
#include <cstdint>

#include "kernels/common/pool_shape.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/pool_rows.h"

#ifdef HT_ISA_X86
#include <immintrin.h>
#endif

namespace halftone {
namespace kernels {

// Column j of window t is element t + j / 2 of phase j % 2 of a padded row.
class ThreesGrad {
 public:
  explicit ThreesGrad(const PoolShape& shape) : h_(shape.h), w_(shape.w) {}

  static bool Supports(const PoolShape& shape) {
    const auto threes = [](const PoolDim& dim) {
      return !dim.adaptive && dim.kernel == 3 && dim.stride == 2;
    };
    const PoolDim& d = shape.d;
    return shape.channels == 1 && d.in == 1 && d.out == 1 && d.kernel == 1 &&
           d.before == 0 && threes(shape.h) && threes(shape.w);
  }

  // Sums of the row that two lines share.
  int64_t ScratchFloats() const { return 2 * Phase(); }

  // Rows of the image that line l's windows complete: [2 * l, 2 * l + rows) of
  // the padded image.
  int64_t Completes(int64_t l) const { return l + 1 == h_.out ? 3 : 2; }

  // Where what (i, j) of window t of line l got is: in the image, if that row
  // is complete, else in `sums`.
  float* At(int64_t l, int64_t i, int64_t j, int64_t t, float* sums,
            float* x_grad) const {
    if (i >= Completes(l)) return sums + j % 2 * Phase() + t + j / 2;
    return x_grad + (2 * l + i - h_.before) * w_.in + 2 * t + j - w_.before;
  }

  // Adds up what the windows of line l give to their first elements that equal
  // `out`. Of a row's elements `x` + rows[i] has the first phase, `phase`
  // farther the second. Whether `out` has a NaN, for which nothing was found.
#ifdef HT_ISA_X86
  HT_TARGET_AVX512 bool Add(int64_t l, const float* x, const int64_t* rows,
                            int64_t phase, const float* out, const float* grad,
                            float* sums, float* x_grad) const {
    const int64_t n = w_.out, more = Phase();
    const bool last = l + 1 == h_.out;
    __m512i before[3] = {};  // what the last window gives the next vector
    __mmask16 nans = 0;
    for (int64_t t = 0; t < more; t += kStep) {
      __mmask16 low = Some(n - t), high = Some(n - t - 16);
      const __m512 most[] = {_mm512_maskz_loadu_ps(low, out + t),
                             _mm512_maskz_loadu_ps(high, out + t + 16)};
      const __m512 grads[] = {_mm512_maskz_loadu_ps(low, grad + t),
                              _mm512_maskz_loadu_ps(high, grad + t + 16)};
      nans |= _mm512_cmp_ps_mask(most[0], most[1], _CMP_UNORD_Q);
      float *const even = sums + t, *const odd = even + more;
#pragma GCC unroll 3
      for (int i = 0; i < 3; ++i) {
        __m512 evens[2] = {}, odds[2] = {};
        if (i == 0 && l > 0) {
          evens[0] = _mm512_loadu_ps(even);
          evens[1] = _mm512_loadu_ps(even + 16);
          odds[0] = _mm512_loadu_ps(odd);
          odds[1] = _mm512_loadu_ps(odd + 16);
        }
        const float* v = x + rows[i] + t;
        __mmask16 found[2];
        Find(v, most, &low, &high, found);
        Give(found, grads, evens);
        Find(v + phase, most, &low, &high, found);
        Give(found, grads, odds);
        // Of the window before: the last window is the first to give.
        Find(v + 1, most, &low, &high, found);
        const __m512i one =
            _mm512_castps_si512(_mm512_maskz_mov_ps(found[0], grads[0]));
        const __m512i two =
            _mm512_castps_si512(_mm512_maskz_mov_ps(found[1], grads[1]));
        evens[0] = _mm512_add_ps(evens[0], Next(before[i], one));
        evens[1] = _mm512_add_ps(evens[1], Next(one, two));
        before[i] = two;
        if (i == 2 && !last) {
          _mm512_storeu_ps(even, evens[0]);
          _mm512_storeu_ps(even + 16, evens[1]);
          _mm512_storeu_ps(odd, odds[0]);
          _mm512_storeu_ps(odd + 16, odds[1]);
        } else {
          const int64_t y = 2 * l + i - h_.before;
          if (y >= 0 && y < h_.in) {
            Write(evens, odds, 2 * t - w_.before, x_grad + y * w_.in);
          }
        }
      }
    }
    return nans != 0;
  }
#else
  bool Add(int64_t, const float*, const int64_t*, int64_t, const float*,
           const float*, float*, float*) const {
    return false;  // never called
  }
#endif  // HT_ISA_X86

 private:
  static constexpr int64_t kStep = 32;

  // Elements of a row's phase: those with windows, and those of the image.
  int64_t Phase() const {
    const int64_t columns = std::max(w_.out + 1, (w_.in + w_.before + 1) / 2);
    return (columns + kStep - 1) / kStep * kStep;
  }

#ifdef HT_ISA_X86
  static __mmask16 Some(int64_t left) {
    return static_cast<__mmask16>(left >= 16  ? 0xffff
                                  : left <= 0 ? 0
                                              : (1 << left) - 1);
  }
  // Of 32 windows that are open; those that are found no longer are.
  HT_TARGET_AVX512 static void Find(const float* x, const __m512* most,
                                    __mmask16* low, __mmask16* high,
                                    __mmask16* found) {
    found[0] =
        _mm512_mask_cmp_ps_mask(*low, _mm512_loadu_ps(x), most[0], _CMP_EQ_OQ);
    found[1] = _mm512_mask_cmp_ps_mask(*high, _mm512_loadu_ps(x + 16), most[1],
                                       _CMP_EQ_OQ);
    *low = _kandn_mask16(found[0], *low);
    *high = _kandn_mask16(found[1], *high);
  }
  HT_TARGET_AVX512 static void Give(const __mmask16* found, const __m512* grads,
                                    __m512* sums) {
    sums[0] = _mm512_mask_add_ps(sums[0], found[0], sums[0], grads[0]);
    sums[1] = _mm512_mask_add_ps(sums[1], found[1], sums[1], grads[1]);
  }
  // One place on.
  HT_TARGET_AVX512 static __m512 Next(__m512i before, __m512i v) {
    return _mm512_castsi512_ps(
        _mm512_maskz_alignr_epi32(0xffff, v, before, 15));
  }
  // Columns from c on, of which there may be less than 64 in a row.
  HT_TARGET_AVX512 void Write(const __m512* evens, const __m512* odds,
                              int64_t c, float* row) const {
#pragma GCC unroll 2
    for (int k = 0; k < 2; ++k) {
      const Columns columns(evens[k], odds[k]);
      Store(columns.first, c + 32 * k, row);
      Store(columns.second, c + 32 * k + 16, row);
    }
  }
  HT_TARGET_AVX512 void Store(__m512 v, int64_t c, float* row) const {
    if (c >= 0 && c + 16 <= w_.in) {
      _mm512_storeu_ps(row + c, v);
    } else if (c < w_.in) {
      const auto there = static_cast<__mmask16>(Some(w_.in - c) & ~Some(-c));
      _mm512_mask_storeu_ps(row + c, there, v);
    }
  }
#endif  // HT_ISA_X86

  PoolDim h_, w_;
};

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_CPU_POOL_MAX_THREES_H_
