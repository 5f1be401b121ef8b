// Dropout of one element, given its 32 random bits.
#ifndef HALFTONE_KERNELS_FUNCTORS_DROPOUT_H_
#define HALFTONE_KERNELS_FUNCTORS_DROPOUT_H_

#include <cmath>
#include <cstdint>

#include "graph/base/philox.h"

namespace halftone {
namespace functors {

// x times 1 / (1 - p), or 0 where ToUniform(bits) is below p: that of `least`,
// from 0 to 2^24, is the first not to be.
struct DropoutOp {
  uint32_t least;
  float scale;

  static DropoutOp Of(double p) {
    const float first = std::ceil(static_cast<float>(p) * 0x1p24f);
    return {static_cast<uint32_t>(first), static_cast<float>(1.0 / (1.0 - p))};
  }
  bool Drops() const { return least > 0; }
  HT_HOST_DEVICE float operator()(float x, uint32_t bits) const {
    return bits >> 8 >= least ? x * scale : 0.0f;
  }
};

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_DROPOUT_H_
