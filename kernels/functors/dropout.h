// Dropout of one element, given its 32 random bits.
#ifndef HALFTONE_KERNELS_FUNCTORS_DROPOUT_H_
#define HALFTONE_KERNELS_FUNCTORS_DROPOUT_H_

#include <cstdint>

#include "graph/base/philox.h"

namespace halftone {
namespace functors {

// x times 1 / (1 - p), or 0 where the draw from [0, 1) is below p.
struct DropoutOp {
  float p, scale;

  static DropoutOp Of(double p) {
    return {static_cast<float>(p), static_cast<float>(1.0 / (1.0 - p))};
  }
  HT_HOST_DEVICE float operator()(float x, uint32_t bits) const {
    return ToUniform(bits) >= p ? x * scale : 0.0f;
  }
};

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_DROPOUT_H_
