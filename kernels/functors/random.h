// Distributions from Philox draws, for initial values.
#ifndef HALFTONE_KERNELS_FUNCTORS_RANDOM_H_
#define HALFTONE_KERNELS_FUNCTORS_RANDOM_H_

#include <cmath>
#include <cstdint>

#include "graph/base/philox.h"

namespace halftone {
namespace functors {

// Standard normal by Box and Muller, in double, from words 0 and 1.
HT_HOST_DEVICE inline double StandardNormal(const Philox4& draw) {
  const double u = (static_cast<double>(draw.x[0]) + 1.0) * 0x1p-32;  // (0, 1]
  const double angle =
      static_cast<double>(draw.x[1]) * (0x1p-32 * 6.283185307179586476925287);
  return sqrt(-2.0 * log(u)) * cos(angle);
}

// Element `index` of a tensor: its own block of draws.
HT_HOST_DEVICE inline double NormalElement(uint64_t key, uint32_t index) {
  return StandardNormal(PhiloxDraw(key, 0, 0, index));
}

// Redrawn, with the sample number as counter, while beyond two deviations.
HT_HOST_DEVICE inline double TruncatedNormalElement(uint64_t key,
                                                    uint32_t index) {
  double z = NormalElement(key, index);
  for (uint64_t attempt = 1; z < -2.0 || z > 2.0; ++attempt) {
    z = StandardNormal(PhiloxDraw(key, 0, attempt, index));
  }
  return z;
}

}  // namespace functors
}  // namespace halftone

#endif  // HALFTONE_KERNELS_FUNCTORS_RANDOM_H_
