// How far a value in some dtype is from its reference in f32.
#ifndef HALFTONE_RUNTIME_COMPARE_VALUE_ERRORS_H_
#define HALFTONE_RUNTIME_COMPARE_VALUE_ERRORS_H_

#include <cstdint>

#include "graph/base/dtype_fwd.h"

namespace halftone {
namespace runtime {

// Of all elements whose reference is finite; sums and extremes of errors are
// of those whose value is finite, too. Sums are made in f64, by fixed blocks:
// the same bits for any number of threads.
struct ValueErrors {
  int64_t elements = 0;
  int64_t non_finite = 0;  // values
  int64_t overflow = 0;    // of them those that are infinite
  // Values that are 0 where the reference is not, and is below the dtype's
  // smallest normal number.
  int64_t underflow = 0;
  double sum_abs_error = 0, max_abs_error = 0;
  double max_rel_error = 0;  // |value - reference| / |reference|, that not 0
  // In steps between neighbouring numbers of the dtype, from the reference
  // rounded to it.
  double max_ulps = 0;
  double sum_squared_error = 0, sum_squared_reference = 0;
  double sum_squared_value = 0, sum_product = 0;
  double max_reference = 0;  // its largest magnitude
  // Up to this root mean square the reference is 0 but for what f32 rounds off
  // where its summands cancel, as in the gradient of a bias before a norm.
  double rounding = 0;

  double mean_abs_error() const;
  // |value - reference| / |reference|, Euclidean norms; where the reference is
  // 0 but for rounding, by what its summands sum to without their signs.
  // Infinite with a value that is not finite, or where the reference is 0 and
  // the value not.
  double relative_error() const;
  double cosine() const;  // 1 if both are 0
  double share(int64_t count) const;

  // What is known of more elements, or of another batch.
  void Add(const ValueErrors& other);
};

// `value` has `elements` of `dtype` (f32, f16, bf16; CHECKed) that stand for
// scale * reference; errors are given unscaled, ulps and underflow scaled.
ValueErrors ErrorsOf(DType dtype, const void* value, const float* reference,
                     float scale, int64_t elements, int threads);

// Writes scale * reference, rounded once to the dtype.
void WriteScaled(const float* reference, float scale, DType dtype, void* to,
                 int64_t elements, int threads);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_COMPARE_VALUE_ERRORS_H_
