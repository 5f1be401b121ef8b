// A group of floats as a few bits each: scale, code and value. Host and device
// make the same bits.
#ifndef HALFTONE_KERNELS_FUNCTORS_GROUP_CODE_H_
#define HALFTONE_KERNELS_FUNCTORS_GROUP_CODE_H_

#include <cfloat>
#include <cstdint>

#include "graph/base/half.h"

namespace halftone {
namespace functors {

// What is to be known of a group's elements.
struct GroupRange {
  float least, most;
  float least_positive;  // FLT_MAX or more: none
  bool finite;           // all of them
};

// As Scales has it: code c is base + c * step. Where the group's least is 0,
// its step is negative, code 0 is 0, and c > 0 is base - (c - 1) * step: zeros
// stay zeros and what is above stays above, which is all that a relu's gradient
// asks of its result.
struct GroupScale {
  float base, step;

  static HT_HOST_DEVICE GroupScale Of(const GroupRange& range, int bits) {
    if (!range.finite) {
      const float nan = half_internal::FromBits(0x7fc00000u);
      return {nan, nan};
    }
    const bool zero = range.least == 0.0f && range.most > 0.0f;
    const float base = zero ? range.least_positive : range.least;
    const int steps = (1 << bits) - (zero ? 2 : 1);
    const float top = static_cast<float>(steps);
    // No difference of two elements: that may be too large for a float.
    float step = range.most / top - base / top;
    if (!(Value(base, step, steps) <= range.most)) step *= 1.0f - 0x1p-22f;
    if (step < 0.0f) step = 0.0f;  // by rounding
    return {base, zero ? -step : step};
  }
  // What lies so many steps above the base: added in parts, for all of them
  // together may be too much for a float.
  static HT_HOST_DEVICE float Value(float base, float step, int steps) {
    const float half = static_cast<float>(steps >> 1) * step;
    const float odd = static_cast<float>(steps & 1) * step;
    return base + half + half + odd;
  }
  // Of -0, too.
  HT_HOST_DEVICE bool has_zero() const {
    return (half_internal::Bits(step) >> 31) != 0;
  }
};

// From an element of a group and 16 random bits to its code.
struct GroupEncoder {
  float base, per_step, top;
  int first;  // the code of `base`

  static HT_HOST_DEVICE GroupEncoder Of(const GroupScale& scale, int bits) {
    const int first = scale.has_zero() ? 1 : 0;
    const float half_step = 0.5f * (first != 0 ? -scale.step : scale.step);
    // Steps too small to divide by, and NaN: all codes are the first.
    const float per_step = half_step >= FLT_MIN ? 1.0f / half_step : 0.0f;
    return {scale.base, per_step, static_cast<float>((1 << bits) - 1 - first),
            first};
  }
  HT_HOST_DEVICE uint8_t operator()(float x, uint16_t random) const {
    float place = (0.5f * x - 0.5f * base) * per_step;
    place = place > 0.0f ? place : 0.0f;  // of NaN, too
    place = place < top ? place : top;
    const int up = static_cast<int>(place + 0x1p-16f * random);
    return static_cast<uint8_t>(x < base ? 0 : up + first);
  }
};

struct GroupDecoder {
  float base, step;
  int first;

  static HT_HOST_DEVICE GroupDecoder Of(const GroupScale& scale) {
    const int first = scale.has_zero() ? 1 : 0;
    return {scale.base, first != 0 ? -scale.step : scale.step, first};
  }
  HT_HOST_DEVICE float operator()(int code) const {
    const float value = GroupScale::Value(base, step, code - first);
    return code < first ? 0.0f : value;
  }
};

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_GROUP_CODE_H_
