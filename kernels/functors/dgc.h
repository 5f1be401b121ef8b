// Momentum correction and the choice of what is sent (op dgc).
#ifndef HALFTONE_KERNELS_FUNCTORS_DGC_H_
#define HALFTONE_KERNELS_FUNCTORS_DGC_H_

#include <cstdint>

#include "kernels/functors/math.h"

namespace halftone {
namespace functors {

struct DgcRule {
  float mu = 0, weight_decay = 0;
  bool nesterov = false;
  float clip_norm = 0;  // of g, 0: it is not clipped

  // What g of that norm is multiplied by.
  HT_HOST_DEVICE float ClipFactor(double squared_norm) const {
    const float norm = Sqrt(static_cast<float>(squared_norm));
    return clip_norm > 0 && norm > clip_norm ? clip_norm / norm : 1.0f;
  }
  // `g`: scaled and clipped; `w`: the parameter.
  HT_HOST_DEVICE void Add(float g, float w, float& u, float& v) const {
    g += weight_decay * w;
    if (nesterov) {
      u = mu * (u + g);
      v += u + g;
    } else {
      u = mu * u + g;
      v += u;
    }
  }
};

// Ordered as magnitudes are.
HT_HOST_DEVICE inline uint32_t MagnitudeBits(float x) {
  union {
    float f32;
    uint32_t u32;
  } same = {x};
  return same.u32 & 0x7fffffffu;
}

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_DGC_H_
